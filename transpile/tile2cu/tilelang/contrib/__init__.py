"""`tilelang.contrib`: queries of the compiler."""

from tile2cu.tilelang.contrib import nvcc

__all__ = ["nvcc"]
