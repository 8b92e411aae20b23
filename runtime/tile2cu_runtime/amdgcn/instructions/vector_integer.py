"""Integer vector arithmetic, as a table. [MI300 ISA, "VOP1, VOP2, VOP3 Instructions"]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I32, I64, MASK32, U16, U32, U64, Array


@dataclass(frozen=True)
class VectorOperation:
    """`sources` and `result` are type letters (see registers); `function` takes arrays that broadcast."""

    sources: str
    function: Any
    result: str


def shift(amount: Array) -> Array:
    """The low five bits, which a 32-bit shift uses."""
    result: Array = amount & amount.dtype.type(31)
    return result


def _shift64(amount: Array, kind: Any = U64) -> Array:
    result: Array = (amount & U32(63)).astype(kind)
    return result


def _high_product(a: Array, b: Array) -> Array:
    result: Array = ((a.astype(U64) * b) >> U64(32)).astype(U32)
    return result


def _signed_high_product(a: Array, b: Array) -> Array:
    result: Array = ((a.astype(I64) * b) >> I64(32)).astype(I32)
    return result


def _low24(value: Array) -> Array:
    result: Array = value & U32(0xFFFFFF)
    return result


def _signed24(value: Array) -> Array:
    result: Array = (value << I32(8)) >> I32(8)
    return result


def _bit_field(value: Array, offset: Array, width: Array) -> Array:
    mask = (U64(1) << shift(width).astype(U64)) - U64(1)
    result: Array = ((value >> shift(offset)) & mask).astype(U32)
    return result


def _signed_bit_field(value: Array, offset: Array, width: Array) -> Array:
    """The field, sign-extended; bits above the word are zero."""
    count = shift(width)
    field = _bit_field(value, offset, width)
    negative = (count > 0) & ((field >> np.maximum(count, U32(1)) - U32(1)) & U32(1) == 1)
    above = U32(MASK32) << np.minimum(count, U32(31))
    return np.where(negative, field | above, field)


def _leading_zeros(value: Array) -> Array:
    """The position of the highest set bit from the top; all ones for zero."""
    _, exponent = np.frexp(value.astype(np.float64))
    return np.where(value == 0, U32(MASK32), (32 - exponent).astype(U32))


def _trailing_zeros(value: Array) -> Array:
    _, exponent = np.frexp((value & (~value + U32(1))).astype(np.float64))
    result: Array = np.where(value == 0, U32(MASK32), (exponent - 1).astype(U32))
    return result


def _reverse(value: Array) -> Array:
    """The word with its bits reversed, by swapping halves."""
    for width, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        value = ((value >> U32(width)) & U32(mask)) | ((value & U32(mask)) << U32(width))
    return value


def count_ones(value: Array) -> Array:
    """The number of set bits: sums of neighbouring fields of 1, 2, 4 bits, then of the four bytes."""
    value = value - ((value >> U32(1)) & U32(0x55555555))
    value = (value & U32(0x33333333)) + ((value >> U32(2)) & U32(0x33333333))
    value = (value + (value >> U32(4))) & U32(0x0F0F0F0F)
    result: Array = (value * U32(0x01010101)) >> U32(24)
    return result


def _permute_bytes(a: Array, b: Array, selectors: Array) -> Array:
    """v_perm_b32: each selector byte selects a byte of {a, b}; 12 is 0x00, 13 and above 0xff."""
    both = (a.astype(U64) << U64(32)) | b
    result: Array = np.zeros(np.broadcast_shapes(both.shape, selectors.shape), U32)
    for number in range(4):
        selector = (selectors >> U32(8 * number)) & U32(0xFF)
        byte = ((both >> ((selector & U32(7)) * U32(8)).astype(U64)) & U64(0xFF)).astype(U32)
        byte = np.where(selector >= 13, U32(0xFF), np.where(selector == 12, U32(0), byte))
        result |= byte << U32(8 * number)
    return result


def _align(bits: int, mask: int) -> Any:
    """v_alignbit_b32, v_alignbyte_b32: 32 bits of {a, b} from a bit or byte."""

    def function(a: Array, b: Array, amount: Array) -> Array:
        both = (a.astype(U64) << U64(32)) | b
        result: Array = (both >> ((amount & U32(mask)) * U32(bits)).astype(U64)).astype(U32)
        return result

    return function


def _median(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _sad_bytes(a: Array, b: Array, c: Array) -> Array:
    total = c
    for number in range(4):
        x, y = (a >> U32(8 * number)) & U32(255), (b >> U32(8 * number)) & U32(255)
        total = total + np.maximum(x, y) - np.minimum(x, y)
    return total


TABLE: dict[str, VectorOperation] = {
    # moves
    "v_mov_b32": VectorOperation("u", lambda a: a, "u"),
    "v_mov_b64": VectorOperation("q", lambda a: a, "q"),
    "v_accvgpr_read_b32": VectorOperation("u", lambda a: a, "u"),
    "v_accvgpr_write_b32": VectorOperation("u", lambda a: a, "u"),
    "v_accvgpr_mov_b32": VectorOperation("u", lambda a: a, "u"),
    # bits
    "v_not_b32": VectorOperation("u", np.invert, "u"),
    "v_and_b32": VectorOperation("uu", np.bitwise_and, "u"),
    "v_or_b32": VectorOperation("uu", np.bitwise_or, "u"),
    "v_xor_b32": VectorOperation("uu", np.bitwise_xor, "u"),
    "v_xnor_b32": VectorOperation("uu", lambda a, b: ~(a ^ b), "u"),
    "v_and_or_b32": VectorOperation("uuu", lambda a, b, c: (a & b) | c, "u"),
    "v_or3_b32": VectorOperation("uuu", lambda a, b, c: a | b | c, "u"),
    "v_bfi_b32": VectorOperation("uuu", lambda a, b, c: (a & b) | (~a & c), "u"),
    "v_bfe_u32": VectorOperation("uuu", _bit_field, "u"),
    "v_bfe_i32": VectorOperation("uuu", _signed_bit_field, "u"),
    "v_bfm_b32": VectorOperation("uu", lambda a, b: ((U32(1) << shift(a)) - U32(1)) << shift(b), "u"),
    "v_bfrev_b32": VectorOperation("u", _reverse, "u"),
    "v_ffbh_u32": VectorOperation("u", _leading_zeros, "u"),
    "v_ffbh_i32": VectorOperation("i", lambda a: _leading_zeros((a ^ (a >> 31)).view(U32)), "u"),
    "v_ffbl_b32": VectorOperation("u", _trailing_zeros, "u"),
    "v_bcnt_u32_b32": VectorOperation("uu", lambda a, b: count_ones(a) + b, "u"),
    "v_perm_b32": VectorOperation("uuu", _permute_bytes, "u"),
    "v_alignbit_b32": VectorOperation("uuu", _align(1, 31), "u"),
    "v_alignbyte_b32": VectorOperation("uuu", _align(8, 3), "u"),
    # shifts
    "v_lshlrev_b32": VectorOperation("uu", lambda a, b: b << shift(a), "u"),
    "v_lshrrev_b32": VectorOperation("uu", lambda a, b: b >> shift(a), "u"),
    "v_ashrrev_i32": VectorOperation("ii", lambda a, b: b >> shift(a), "i"),
    "v_lshlrev_b64": VectorOperation("uq", lambda a, b: b << _shift64(a), "q"),
    "v_lshrrev_b64": VectorOperation("uq", lambda a, b: b >> _shift64(a), "q"),
    "v_ashrrev_i64": VectorOperation("ul", lambda a, b: b >> _shift64(a, I64), "l"),
    "v_lshl_add_u32": VectorOperation("uuu", lambda a, b, c: (a << shift(b)) + c, "u"),
    "v_add_lshl_u32": VectorOperation("uuu", lambda a, b, c: (a + b) << shift(c), "u"),
    "v_lshl_or_b32": VectorOperation("uuu", lambda a, b, c: (a << shift(b)) | c, "u"),
    "v_lshl_add_u64": VectorOperation("quq", lambda a, b, c: (a << (b & U32(7)).astype(U64)) + c, "q"),
    # sums and products
    "v_add_u32": VectorOperation("uu", np.add, "u"),
    "v_sub_u32": VectorOperation("uu", np.subtract, "u"),
    "v_subrev_u32": VectorOperation("uu", lambda a, b: b - a, "u"),
    "v_add_i32": VectorOperation("uu", np.add, "u"),
    "v_sub_i32": VectorOperation("uu", np.subtract, "u"),
    "v_add3_u32": VectorOperation("uuu", lambda a, b, c: a + b + c, "u"),
    "v_xad_u32": VectorOperation("uuu", lambda a, b, c: (a ^ b) + c, "u"),
    "v_sad_u32": VectorOperation("uuu", lambda a, b, c: np.maximum(a, b) - np.minimum(a, b) + c, "u"),
    "v_sad_u8": VectorOperation("uuu", _sad_bytes, "u"),
    "v_mul_lo_u32": VectorOperation("uu", np.multiply, "u"),
    "v_mul_hi_u32": VectorOperation("uu", _high_product, "u"),
    "v_mul_hi_i32": VectorOperation("ii", _signed_high_product, "i"),
    "v_mul_u32_u24": VectorOperation("uu", lambda a, b: _low24(a) * _low24(b), "u"),
    "v_mul_hi_u32_u24": VectorOperation("uu", lambda a, b: _high_product(_low24(a), _low24(b)), "u"),
    "v_mul_i32_i24": VectorOperation("ii", lambda a, b: _signed24(a) * _signed24(b), "i"),
    "v_mad_u32_u24": VectorOperation("uuu", lambda a, b, c: _low24(a) * _low24(b) + c, "u"),
    "v_mad_i32_i24": VectorOperation("iii", lambda a, b, c: _signed24(a) * _signed24(b) + c, "i"),
    # order
    "v_max_u32": VectorOperation("uu", np.maximum, "u"),
    "v_min_u32": VectorOperation("uu", np.minimum, "u"),
    "v_max_i32": VectorOperation("ii", np.maximum, "i"),
    "v_min_i32": VectorOperation("ii", np.minimum, "i"),
    "v_max3_u32": VectorOperation("uuu", lambda a, b, c: np.maximum(np.maximum(a, b), c), "u"),
    "v_min3_u32": VectorOperation("uuu", lambda a, b, c: np.minimum(np.minimum(a, b), c), "u"),
    "v_max3_i32": VectorOperation("iii", lambda a, b, c: np.maximum(np.maximum(a, b), c), "i"),
    "v_min3_i32": VectorOperation("iii", lambda a, b, c: np.minimum(np.minimum(a, b), c), "i"),
    "v_med3_u32": VectorOperation("uuu", _median, "u"),
    "v_med3_i32": VectorOperation("iii", _median, "i"),
    # 16 bits
    "v_add_u16": VectorOperation("ww", np.add, "w"),
    "v_sub_u16": VectorOperation("ww", np.subtract, "w"),
    "v_subrev_u16": VectorOperation("ww", lambda a, b: b - a, "w"),
    "v_mul_lo_u16": VectorOperation("ww", np.multiply, "w"),
    "v_mad_u16": VectorOperation("www", lambda a, b, c: a * b + c, "w"),
    # Unlike v_mad_u16 these clear the upper half of the register. [MI300 ISA, "V_MAD_LEGACY_U16"]
    "v_mad_legacy_u16": VectorOperation("www", lambda a, b, c: a * b + c, "w"),
    "v_mad_legacy_i16": VectorOperation("xxx", lambda a, b, c: a * b + c, "x"),
    "v_lshlrev_b16": VectorOperation("ww", lambda a, b: b << (a & U16(15)), "w"),
    "v_lshrrev_b16": VectorOperation("ww", lambda a, b: b >> (a & U16(15)), "w"),
    "v_ashrrev_i16": VectorOperation("xx", lambda a, b: b >> (a & np.int16(15)), "x"),
    "v_max_u16": VectorOperation("ww", np.maximum, "w"),
    "v_min_u16": VectorOperation("ww", np.minimum, "w"),
    "v_max_i16": VectorOperation("xx", np.maximum, "x"),
    "v_min_i16": VectorOperation("xx", np.minimum, "x"),
}
