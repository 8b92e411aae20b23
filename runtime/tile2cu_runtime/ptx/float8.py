"""The 8-bit floats e4m3 and e5m2. [OCP 8-bit Floating Point Specification; PTX ISA 9.0, "cvt"]"""

from __future__ import annotations

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array


def _table(exponent_bits: int) -> Array:
    """The value of each code. e5m2 has infinities; e4m3 has none, and NaN only as all ones."""
    codes = np.arange(256)
    mantissa_bits = 7 - exponent_bits
    bias = (1 << exponent_bits - 1) - 1
    exponent = codes >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    value = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    if exponent_bits == 5:
        value = np.where(exponent == 31, np.where(mantissa == 0, np.inf, np.nan), value)
    else:
        value = np.where(codes & 127 == 127, np.nan, value)
    signed: Array = np.where(codes > 127, -value, value)
    return signed


VALUES = {"e4m3": _table(4), "e5m2": _table(5)}


def decoded(codes: Array, name: str) -> Array:
    """The float64 values of 8-bit codes."""
    values: Array = VALUES[name][codes]
    return values


def encoded(values: Array, name: str) -> Array:
    """Codes, rounded to nearest even and saturated; NaN is preserved (.rn.satfinite)."""
    positive = VALUES[name][:128]
    finite = positive[np.isfinite(positive)]
    size = np.minimum(np.abs(values.astype(np.float64)), finite[-1])
    above = np.clip(np.searchsorted(finite, size), 1, len(finite) - 1)
    middle = (finite[above - 1] + finite[above]) / 2
    up = (size > middle) | ((size == middle) & (above % 2 == 0))
    code = np.where(np.isnan(values), 127, np.where(up, above, above - 1))
    result: Array = (code | np.where(np.signbit(values), 128, 0)).astype(np.uint8)
    return result
