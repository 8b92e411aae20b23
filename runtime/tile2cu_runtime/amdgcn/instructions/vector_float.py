"""Floating-point vector arithmetic and conversions, as tables. [MI300 ISA, "VOP1, VOP2, VOP3 Instructions"]

Transcendental functions are correctly rounded; the hardware's have errors of about 1 ulp. The MODE register is not
modelled: denormals are kept, rounding is to nearest even.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn.arrays import F16, F32, F64, I32, I64, MASK32, U16, U32, Array
from tile2cu_runtime.amdgcn.formats import float32_to_bfloat16
from tile2cu_runtime.amdgcn.instructions.vector_integer import VectorOperation


def fused(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in double precision, rounded once to the type of the sources."""
    product: Array = a.astype(F64) * b
    product += c
    return product.astype(a.dtype, copy=False)


def _in_double(function: Any) -> Any:
    """A function computed in double precision and rounded to the source's type."""
    return lambda a: function(a.astype(F64)).astype(a.dtype)


def _maximum3(a: Array, b: Array, c: Array) -> Array:
    return np.fmax(np.fmax(a, b), c)


def _minimum3(a: Array, b: Array, c: Array) -> Array:
    return np.fmin(np.fmin(a, b), c)


def _median(a: Array, b: Array, c: Array) -> Array:
    return np.fmax(np.fmin(a, b), np.fmin(np.fmax(a, b), c))


def _quotient(_: Array, denominator: Array, numerator: Array) -> Array:
    """v_div_fixup: computes the quotient, since the preceding steps are not modelled exactly."""
    return (numerator.astype(F64) / denominator).astype(numerator.dtype)


def _legacy_product(a: Array, b: Array) -> Array:
    return np.where((a == 0) | (b == 0), F32(0), a * b)


def _exponent(value: Array) -> Array:
    return np.where(np.isfinite(value), np.frexp(value)[1], 0).astype(I32)


def _to_integer(low: int, high: int, kind: Any) -> Any:
    """Truncation, saturating; NaN is 0."""

    def function(value: Array) -> Array:
        cut = np.clip(np.trunc(value.astype(F64)), low, high)
        return np.where(np.isnan(value), 0, cut).astype(I64).astype(kind)

    return function


def _towards_zero(value: Array) -> Array:
    """Float32 rounded to float16 towards zero, as uint32."""
    half = value.astype(F16)
    bits = half.view(U16)
    over = (np.abs(half.astype(F64)) > np.abs(value.astype(F64))) & np.isfinite(value)
    return np.where(over, bits - U16(1), bits).astype(U32)


def _join_halves(low: Array, high: Array) -> Array:
    result: Array = low.view(U16).astype(U32) | (high.view(U16).astype(U32) << U32(16))
    return result


def _normalized(scale: float, kind: Any) -> Any:
    return lambda value: np.rint(np.clip(value.astype(F64), -1, 1) * scale).astype(kind).view(U16).astype(U32)


_SIGNED16 = _normalized(32767.0, np.int16)


def _byte(number: int) -> Any:
    return lambda a: ((a >> U32(8 * number)) & U32(255)).astype(F32)


def _of_all_widths() -> dict[str, VectorOperation]:
    """The instructions that float16, float32 and float64 have in common."""
    found: dict[str, VectorOperation] = {}
    for letter, name in (("h", "f16"), ("f", "f32"), ("d", "f64")):
        one, two, three = letter, 2 * letter, 3 * letter
        found |= {
            f"v_add_{name}": VectorOperation(two, np.add, letter),
            f"v_sub_{name}": VectorOperation(two, np.subtract, letter),
            f"v_subrev_{name}": VectorOperation(two, lambda a, b: b - a, letter),
            f"v_mul_{name}": VectorOperation(two, np.multiply, letter),
            f"v_max_{name}": VectorOperation(two, np.fmax, letter),
            f"v_min_{name}": VectorOperation(two, np.fmin, letter),
            f"v_max3_{name}": VectorOperation(three, _maximum3, letter),
            f"v_min3_{name}": VectorOperation(three, _minimum3, letter),
            f"v_med3_{name}": VectorOperation(three, _median, letter),
            f"v_fma_{name}": VectorOperation(three, fused, letter),
            f"v_div_fmas_{name}": VectorOperation(three, fused, letter),
            f"v_div_fixup_{name}": VectorOperation(three, _quotient, letter),
            f"v_rcp_{name}": VectorOperation(one, _in_double(lambda a: 1 / a), letter),
            f"v_rsq_{name}": VectorOperation(one, _in_double(lambda a: 1 / np.sqrt(a)), letter),
            f"v_sqrt_{name}": VectorOperation(one, _in_double(np.sqrt), letter),
            f"v_exp_{name}": VectorOperation(one, _in_double(np.exp2), letter),
            f"v_log_{name}": VectorOperation(one, _in_double(np.log2), letter),
            f"v_sin_{name}": VectorOperation(one, _in_double(lambda a: np.sin(a * 2 * np.pi)), letter),
            f"v_cos_{name}": VectorOperation(one, _in_double(lambda a: np.cos(a * 2 * np.pi)), letter),
            f"v_floor_{name}": VectorOperation(one, np.floor, letter),
            f"v_ceil_{name}": VectorOperation(one, np.ceil, letter),
            f"v_trunc_{name}": VectorOperation(one, np.trunc, letter),
            f"v_rndne_{name}": VectorOperation(one, np.rint, letter),
            f"v_fract_{name}": VectorOperation(one, lambda a: a - np.floor(a), letter),
            f"v_frexp_mant_{name}": VectorOperation(one, lambda a: np.frexp(a)[0], letter),
        }
    return found


TABLE: dict[str, VectorOperation] = {
    **_of_all_widths(),
    "v_mul_legacy_f32": VectorOperation("ff", _legacy_product, "f"),
    "v_rcp_iflag_f32": VectorOperation("f", _in_double(lambda a: 1 / a), "f"),
    "v_frexp_exp_i32_f32": VectorOperation("f", _exponent, "i"),
    "v_frexp_exp_i32_f64": VectorOperation("d", _exponent, "i"),
    "v_ldexp_f16": VectorOperation("hx", lambda a, b: np.ldexp(a, b.astype(I32)), "h"),
    "v_ldexp_f32": VectorOperation("fi", np.ldexp, "f"),
    "v_ldexp_f64": VectorOperation("di", np.ldexp, "d"),
    # conversions
    "v_cvt_f32_f16": VectorOperation("h", lambda a: a.astype(F32), "f"),
    "v_cvt_f16_f32": VectorOperation("f", lambda a: a.astype(F16), "h"),
    "v_cvt_f64_f32": VectorOperation("f", lambda a: a.astype(F64), "d"),
    "v_cvt_f32_f64": VectorOperation("d", lambda a: a.astype(F32), "f"),
    "v_cvt_f32_u32": VectorOperation("u", lambda a: a.astype(F32), "f"),
    "v_cvt_f32_i32": VectorOperation("i", lambda a: a.astype(F32), "f"),
    "v_cvt_f64_u32": VectorOperation("u", lambda a: a.astype(F64), "d"),
    "v_cvt_f64_i32": VectorOperation("i", lambda a: a.astype(F64), "d"),
    "v_cvt_f16_u16": VectorOperation("w", lambda a: a.astype(F16), "h"),
    "v_cvt_f16_i16": VectorOperation("x", lambda a: a.astype(F16), "h"),
    "v_cvt_u16_f16": VectorOperation("h", _to_integer(0, 65535, U16), "w"),
    "v_cvt_i16_f16": VectorOperation("h", _to_integer(-32768, 32767, np.int16), "x"),
    "v_cvt_u32_f32": VectorOperation("f", _to_integer(0, MASK32, U32), "u"),
    "v_cvt_i32_f32": VectorOperation("f", _to_integer(-(2**31), 2**31 - 1, I32), "i"),
    "v_cvt_u32_f64": VectorOperation("d", _to_integer(0, MASK32, U32), "u"),
    "v_cvt_i32_f64": VectorOperation("d", _to_integer(-(2**31), 2**31 - 1, I32), "i"),
    "v_cvt_pkrtz_f16_f32": VectorOperation("ff", lambda a, b: _towards_zero(a) | (_towards_zero(b) << U32(16)), "u"),
    "v_cvt_pk_f16_f32": VectorOperation("ff", lambda a, b: _join_halves(a.astype(F16), b.astype(F16)), "u"),
    "v_cvt_pk_bf16_f32": VectorOperation(
        "ff", lambda a, b: float32_to_bfloat16(a) | (float32_to_bfloat16(b) << U32(16)), "u"
    ),
    "v_cvt_pknorm_i16_f32": VectorOperation("ff", lambda a, b: _SIGNED16(a) | (_SIGNED16(b) << U32(16)), "u"),
    "v_cvt_pk_u16_u32": VectorOperation(
        "uu", lambda a, b: np.minimum(a, U32(0xFFFF)) | (np.minimum(b, U32(0xFFFF)) << U32(16)), "u"
    ),
    "v_pack_b32_f16": VectorOperation("hh", _join_halves, "u"),
    **{f"v_cvt_f32_ubyte{number}": VectorOperation("u", _byte(number), "f") for number in range(4)},
}
