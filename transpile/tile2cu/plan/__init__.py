"""What a kernel does, as typed operations that any style can print."""
