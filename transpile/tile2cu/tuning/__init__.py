"""Measured settings of tile parameters: which to measure, whom to believe, and the files that keep them."""
