"""`tilelang.utils`: the helpers that programs call."""

from typing import Any

from tile2cu.tilelang.supply import TensorSupplyType
from tile2cu.tilelang.symbols import DType, others
from tile2cu.tilelang.utils.tensor import map_torch_type, torch_assert_close

__all__ = ["TensorSupplyType", "determine_fp8_type", "determine_torch_fp8_type", "map_torch_type", "torch_assert_close"]


def determine_fp8_type(fp8_format: str = "e4m3") -> DType:
    """The type of 8-bit floats with 4 or 5 bits of exponent, of NVIDIA's kind."""
    return DType("float8_e5m2" if fp8_format == "e5m2" else "float8_e4m3fn")


def determine_torch_fp8_type(fp8_format: str = "e4m3") -> Any:
    """The same as torch's."""
    return determine_fp8_type(fp8_format).as_torch()


__getattr__ = others(__name__)
