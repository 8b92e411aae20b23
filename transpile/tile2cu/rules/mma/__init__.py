"""Matrix instructions: which one, by which warps."""
