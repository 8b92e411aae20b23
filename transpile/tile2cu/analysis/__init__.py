"""Analyses of a program: its accesses, the order of statements that must be kept, and the ranges of its values."""
