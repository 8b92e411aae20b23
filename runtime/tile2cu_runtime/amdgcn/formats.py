"""Number formats of 4 to 16 bits: tables of their values, and rounding to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tile2cu_runtime.amdgcn.arrays import F32, F64, U16, U32, Array


@dataclass(frozen=True, kw_only=True)
class SmallFloat:
    """A floating-point format with a sign, `exponent` and `mantissa` bits.

    `special` defines the special codes: "ieee" (infinities and NaNs), "fn" (all ones is NaN, no infinity), "fnuz" (the
    code of -0 is NaN), "none".
    Source: OCP 8-bit Floating Point Specification; OCP Microscaling Formats; MI300 ISA, "Data Formats" for FNUZ.
    """

    exponent: int
    mantissa: int
    bias: int
    special: str

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    def value(self, code: int) -> float:
        sign = -1.0 if code >> (self.bits - 1) else 1.0
        exponent = code >> self.mantissa & ((1 << self.exponent) - 1)
        fraction = (code & ((1 << self.mantissa) - 1)) / (1 << self.mantissa)
        if special := self._special(code, exponent, fraction):
            return sign * special
        if exponent == 0:
            return float(sign * fraction * 2.0 ** (1 - self.bias))
        return float(sign * (1 + fraction) * 2.0 ** (exponent - self.bias))

    def _special(self, code: int, exponent: int, fraction: float) -> float:
        magnitude = (1 << (self.bits - 1)) - 1
        match self.special:
            case "fnuz" if code == 1 << (self.bits - 1):
                return float("nan")
            case "fn" if code & magnitude == magnitude:
                return float("nan")
            case "ieee" if exponent == (1 << self.exponent) - 1:
                return float("nan") if fraction else float("inf")
        return 0.0


FP8_FNUZ = SmallFloat(exponent=4, mantissa=3, bias=8, special="fnuz")
BF8_FNUZ = SmallFloat(exponent=5, mantissa=2, bias=16, special="fnuz")
FP8_OCP = SmallFloat(exponent=4, mantissa=3, bias=7, special="fn")
BF8_OCP = SmallFloat(exponent=5, mantissa=2, bias=15, special="ieee")
FP6 = SmallFloat(exponent=2, mantissa=3, bias=1, special="none")
BF6 = SmallFloat(exponent=3, mantissa=2, bias=3, special="none")
FP4 = SmallFloat(exponent=2, mantissa=1, bias=1, special="none")


def fp8_formats(target: str) -> dict[str, SmallFloat]:
    """The formats `fp8` and `bf8` of an architecture: FNUZ on gfx942, OCP from gfx950 on."""
    return {"fp8": FP8_OCP, "bf8": BF8_OCP} if target == "gfx950" else {"fp8": FP8_FNUZ, "bf8": BF8_FNUZ}


@cache
def table(form: SmallFloat) -> Array:
    """The values of all codes, float32."""
    return np.array([form.value(code) for code in range(1 << form.bits)], F32)


@cache
def _magnitudes(form: SmallFloat) -> tuple[Array, Array]:
    """The finite magnitudes in ascending order, float64, and their codes."""
    values = table(form)[: 1 << (form.bits - 1)].astype(F64)
    finite = np.flatnonzero(np.isfinite(values))
    return values[finite], finite


def encode(values: Array, form: SmallFloat) -> Array:
    """Float32 rounded to the nearest code, ties to even, saturating; uint32. NaN stays NaN."""
    magnitudes, codes = _magnitudes(form)
    wanted = np.abs(values.astype(F64))
    above = np.clip(np.searchsorted(magnitudes, wanted), 1, len(magnitudes) - 1)
    low, high = magnitudes[above - 1], magnitudes[above]
    even = codes[above] % 2 == 0
    up = (wanted - low > high - wanted) | ((wanted - low == high - wanted) & even)
    sign = 1 << (form.bits - 1)
    code = np.where(up, codes[above], codes[above - 1]) | np.signbit(values) * sign
    if form.special == "fnuz":
        code = np.where(code == sign, 0, code)
    nan = sign if form.special == "fnuz" else sign - 1
    return np.where(np.isnan(values), nan, code).astype(U32)


def bfloat16_to_float32(codes: Array) -> Array:
    wide: Array = codes.astype(U32) << U32(16)
    return wide.view(F32)


def float32_to_bfloat16(values: Array) -> Array:
    """The upper half of a float32, rounded to nearest even; uint32."""
    bits = np.ascontiguousarray(values, F32).view(U32)
    rounded = (bits + U32(0x7FFF) + ((bits >> U32(16)) & U32(1))) >> U32(16)
    result: Array = np.where(np.isnan(values), U32(0x7FC0), rounded)
    return result


def float32_to_xf32(bits: Array) -> Array:
    """Float32 with its mantissa truncated to 10 bits, as an xf32 MFMA reads it. [MI300 ISA, "XF32"]"""
    rounded = bits + U32(0xFFF) + ((bits >> U32(13)) & U32(1))
    result: Array = (rounded & U32(0xFFFFE000)).view(F32)
    return result


def unpack_codes(words: Array, bits: int, count: int) -> Array:
    """`count` codes of up to 16 bits each from uint32 words, (..., words) to (..., count), lowest first."""
    raw = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")
    chosen = raw[..., : bits * count].reshape(*raw.shape[:-1], count, bits)
    result: Array = (chosen.astype(U16) << np.arange(bits, dtype=U16)).sum(axis=-1)
    return result


def pack_codes(codes: Array, bits: int) -> Array:
    """The inverse: codes that fill whole uint32 words."""
    raw = codes[..., None].astype(U16) >> np.arange(bits, dtype=U16) & U16(1)
    packed = np.packbits(raw.reshape(*codes.shape[:-1], -1).astype(np.uint8), axis=-1, bitorder="little")
    result: Array = packed.view(U32)
    return result
