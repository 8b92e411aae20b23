"""Tensors and shared memory: bounds, alignment, storage, TMA."""
