"""Barriers and fences: which hazards they end."""
