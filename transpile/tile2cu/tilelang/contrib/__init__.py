"""`tilelang.contrib`: queries of the compiler."""

from tile2cu.tilelang.contrib import nvcc
from tile2cu.tilelang.symbols import others

__all__ = ["nvcc"]


__getattr__ = others(__name__)
