"""Elementwise loops: vectors, packed elements."""
