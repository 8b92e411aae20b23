"""`tilelang.language.fp8`: the 8-bit float types of the GPU."""

from tile2cu.tilelang.utils import determine_fp8_type, determine_torch_fp8_type

__all__ = ["determine_fp8_type", "determine_torch_fp8_type"]
