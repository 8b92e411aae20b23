"""Projects: the listed kernels, and the state of their output folders."""
