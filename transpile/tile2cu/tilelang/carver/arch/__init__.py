"""`tilelang.carver.arch`: facts of the device."""

from tile2cu.tilelang.carver.arch import driver

__all__ = ["driver"]
