"""`tilelang.carver`: facts of the device. Its templates and hints have no counterpart: `tile2cu` has no such search."""
