"""The grid: its order, persistent blocks, clusters, threads."""
