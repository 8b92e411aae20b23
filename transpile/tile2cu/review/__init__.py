"""Pages and pictures of kernels for people who review them; deterministic, from decisions and emitted sources."""
