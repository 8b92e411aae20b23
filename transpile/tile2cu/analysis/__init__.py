"""Questions about a program: what it touches, which order must stay, what its values may be."""
