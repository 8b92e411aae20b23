"""Scalar arithmetic as a table. [MI300 ISA, "Scalar ALU Operations": SOP1, SOP2]

A scalar of all waves is an array of shape (waves, 1), so these are vector operations too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I32, I64, U16, U32, U64, Array, sign_extend

Function = Callable[..., Any]
# The effect on SCC: unchanged, whether the result is nonzero, or the second result of the function.
KEEP, NONZERO, RESULT = "keep", "nonzero", "result"


@dataclass(frozen=True)
class ScalarOperation:
    """`sources` and `result` are type letters; see registers."""

    sources: str
    function: Function
    result: str
    scc: str = NONZERO


def _add_carry(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    return total, total < a


def _sub_borrow(a: Array, b: Array) -> tuple[Array, Array]:
    return a - b, b > a


def add_overflow(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0


def _sub_overflow(a: Array, b: Array) -> tuple[Array, Array]:
    rest = a - b
    return rest, ((a ^ b) & (a ^ rest)) < 0


def _shift_add(bits: int) -> Function:
    def function(a: Array, b: Array) -> tuple[Array, Array]:
        wide = (a.astype(U64) << U64(bits)) + b
        return wide.astype(U32), (wide >> U64(32)) != 0

    return function


def _bit_field(bits: int, signed: bool) -> Function:
    """Extracts a field; the second source is offset | width << 16."""

    def extract(value: int, field: int) -> int:
        offset, width = field & (bits - 1), min(field >> 16 & 0x7F, bits)
        found = value >> offset & ((1 << width) - 1)
        return sign_extend(found, width) & ((1 << bits) - 1) if signed and width else found

    return _elementwise(extract, U32 if bits == 32 else U64)


def _elementwise(function: Callable[..., int], kind: type[np.generic]) -> Function:
    """A function of Python integers, applied to each wave."""

    def applied(*sources: Array) -> Array:
        shape = np.broadcast_shapes(*(source.shape for source in sources))
        flat = [np.broadcast_to(source, shape).ravel().tolist() for source in sources]
        return np.array([function(*values) for values in zip(*flat, strict=True)], kind).reshape(shape)

    return applied


def _first_one(value: int) -> int:
    return (value & -value).bit_length() - 1 & 0xFFFFFFFF


def _leading_zeros(bits: int) -> Callable[[int], int]:
    return lambda value: bits - value.bit_length() if value else 0xFFFFFFFF


def _leading_signs(bits: int) -> Callable[[int], int]:
    """The number of leading bits that equal the sign; all ones where all bits do."""
    zeros, ones = _leading_zeros(bits), (1 << bits) - 1
    return lambda value: zeros(value ^ ones if value >> (bits - 1) else value)


def _reverse(value: int) -> int:
    return int(f"{value:032b}"[::-1], 2)


def _shift64(function: Function) -> Function:
    return lambda a, b: function(a, (b & U32(63)).astype(a.dtype))


BITWISE: dict[str, Function] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "andn1": lambda a, b: ~a & b,
    "orn1": lambda a, b: ~a | b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
COMPARE: dict[str, Function] = {
    "eq": np.equal, "lg": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
}  # fmt: skip

TABLE: dict[str, ScalarOperation] = {
    "s_mov_b32": ScalarOperation("u", lambda a: a, "u", KEEP),
    "s_mov_b64": ScalarOperation("q", lambda a: a, "q", KEEP),
    "s_add_u32": ScalarOperation("uu", _add_carry, "u", RESULT),
    "s_sub_u32": ScalarOperation("uu", _sub_borrow, "u", RESULT),
    "s_add_i32": ScalarOperation("ii", add_overflow, "i", RESULT),
    "s_sub_i32": ScalarOperation("ii", _sub_overflow, "i", RESULT),
    "s_mul_i32": ScalarOperation("uu", np.multiply, "u", KEEP),
    "s_mul_hi_u32": ScalarOperation("uu", lambda a, b: (a.astype(U64) * b) >> U64(32), "u", KEEP),
    "s_mul_hi_i32": ScalarOperation("ii", lambda a, b: (a.astype(I64) * b) >> I64(32), "i", KEEP),
    "s_lshl_b32": ScalarOperation("uu", lambda a, b: a << (b & U32(31)), "u"),
    "s_lshr_b32": ScalarOperation("uu", lambda a, b: a >> (b & U32(31)), "u"),
    "s_ashr_i32": ScalarOperation("ii", lambda a, b: a >> (b & I32(31)), "i"),
    "s_lshl_b64": ScalarOperation("qu", _shift64(np.left_shift), "q"),
    "s_lshr_b64": ScalarOperation("qu", _shift64(np.right_shift), "q"),
    "s_ashr_i64": ScalarOperation("lu", _shift64(np.right_shift), "l"),
    "s_max_i32": ScalarOperation("ii", lambda a, b: (np.maximum(a, b), a > b), "i", RESULT),
    "s_min_i32": ScalarOperation("ii", lambda a, b: (np.minimum(a, b), a < b), "i", RESULT),
    "s_max_u32": ScalarOperation("uu", lambda a, b: (np.maximum(a, b), a > b), "u", RESULT),
    "s_min_u32": ScalarOperation("uu", lambda a, b: (np.minimum(a, b), a < b), "u", RESULT),
    "s_bfe_u32": ScalarOperation("uu", _bit_field(32, False), "u"),
    "s_bfe_i32": ScalarOperation("uu", _bit_field(32, True), "u"),
    "s_bfe_u64": ScalarOperation("qu", _bit_field(64, False), "q"),
    "s_bfe_i64": ScalarOperation("qu", _bit_field(64, True), "q"),
    "s_bfm_b32": ScalarOperation("uu", lambda a, b: ((U32(1) << (a & U32(31))) - U32(1)) << (b & U32(31)), "u", KEEP),
    "s_pack_ll_b32_b16": ScalarOperation("uu", lambda a, b: (a & U32(0xFFFF)) | (b << U32(16)), "u", KEEP),
    "s_pack_lh_b32_b16": ScalarOperation("uu", lambda a, b: (a & U32(0xFFFF)) | (b & U32(0xFFFF0000)), "u", KEEP),
    "s_pack_hh_b32_b16": ScalarOperation("uu", lambda a, b: (a >> U32(16)) | (b & U32(0xFFFF0000)), "u", KEEP),
    "s_not_b32": ScalarOperation("u", np.invert, "u"),
    "s_not_b64": ScalarOperation("q", np.invert, "q"),
    "s_abs_i32": ScalarOperation("i", np.abs, "i"),
    "s_brev_b32": ScalarOperation("u", _elementwise(_reverse, U32), "u", KEEP),
    "s_bcnt1_i32_b32": ScalarOperation("u", _elementwise(lambda a: bin(a).count("1"), U32), "u"),
    "s_bcnt1_i32_b64": ScalarOperation("q", _elementwise(lambda a: bin(a).count("1"), U32), "u"),
    "s_ff1_i32_b32": ScalarOperation("u", _elementwise(_first_one, U32), "u", KEEP),
    "s_ff1_i32_b64": ScalarOperation("q", _elementwise(_first_one, U32), "u", KEEP),
    "s_flbit_i32_b32": ScalarOperation("u", _elementwise(_leading_zeros(32), U32), "u", KEEP),
    "s_flbit_i32_b64": ScalarOperation("q", _elementwise(_leading_zeros(64), U32), "u", KEEP),
    "s_flbit_i32": ScalarOperation("u", _elementwise(_leading_signs(32), U32), "u", KEEP),
    "s_flbit_i32_i64": ScalarOperation("q", _elementwise(_leading_signs(64), U32), "u", KEEP),
    "s_sext_i32_i16": ScalarOperation("u", lambda a: a.astype(U16).view(np.int16).astype(I32), "i", KEEP),
    "s_sext_i32_i8": ScalarOperation("u", lambda a: a.astype(np.uint8).view(np.int8).astype(I32), "i", KEEP),
    **{f"s_lshl{bits}_add_u32": ScalarOperation("uu", _shift_add(bits), "u", RESULT) for bits in (1, 2, 3, 4)},
    **{f"s_{name}_b32": ScalarOperation("uu", function, "u") for name, function in BITWISE.items()},
    **{f"s_{name}_b64": ScalarOperation("qq", function, "q") for name, function in BITWISE.items()},
}
