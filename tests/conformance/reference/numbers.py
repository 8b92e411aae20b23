"""Element types as NumPy has them, and what rounding to them does."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tile2cu.core.dtype import DType

Array = np.ndarray

_FLOATS = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "tfloat32": np.float32,
    "float64": np.float64,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
}
_INTEGERS = {"int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4}  # one element per byte
# Conversions to these saturate: PTX ISA, cvt.satfinite.
_SATURATED = {
    "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float8_e4m3fnuz": 240.0, "float8_e5m2fnuz": 57344.0,
    "float4_e2m1fn": 6.0,
}  # fmt: skip


class CannotInterpret(Exception):
    """The program has something whose meaning this interpreter does not know."""


class KernelFault(Exception):
    """The program does what no program may: an index outside of a tile."""


def numpy_dtype(dtype: DType) -> np.dtype:
    """The type in which a caller's array holds elements."""
    if dtype.is_float:
        if dtype.name not in _FLOATS:
            raise CannotInterpret(f"the type {dtype}")
        return np.dtype(_FLOATS[dtype.name])
    if dtype.name == "ptr":
        raise CannotInterpret("an address")
    return np.dtype(_INTEGERS.get(dtype.name, dtype.name))


def working_dtype(dtype: DType) -> np.dtype:
    """The type in which values are computed: float64 for all floats, an integer's own, bytes for one of 4 bits."""
    if dtype.name in _INTEGERS:
        return np.dtype(np.int8 if dtype.kind == "int" else np.uint8)
    return np.dtype(np.float64) if dtype.is_float else numpy_dtype(dtype)


def converted(values: Array, dtype: DType) -> Array:
    """The values as operands of an operation in `dtype`: floats keep their precision, integers wrap."""
    to = working_dtype(dtype)
    if dtype.name in _INTEGERS:
        digits = np.trunc(values).astype(np.int64) & 15
        return ((digits ^ 8) - 8 if dtype.kind == "int" else digits).astype(to)
    if values.dtype == to:
        return values
    if values.dtype.kind == "f" and dtype.is_int:
        # Instructions convert to 32 or 64 bits, and saturate (PTX ISA, cvt.rzi): narrower types have the lower bits.
        wide = np.dtype(f"{to.kind}{max(to.itemsize, 4)}")
        info = np.iinfo(wide)
        unknown = np.isnan(values)
        # The largest 64-bit integers are no float64: compare, then convert.
        above, below = values >= float(info.max), values <= float(info.min)
        whole = np.where(above | below | unknown, 0, np.trunc(values)).astype(wide)
        held = np.where(above, info.max, np.where(below, info.min, whole)).astype(wide)
        held[unknown] = np.uint64(2**63).astype(wide) if wide.itemsize == 8 else 0
        return held.astype(to)
    return values.astype(to)


def rounded(values: Array, dtype: DType) -> Array:
    """The values as a buffer of `dtype` holds them, in its working type."""
    if not dtype.is_float:
        return converted(values, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        wide = values.astype(np.float64)
        if dtype.name == "float8_e8m0fnu":  # the magnitude, rounded up: PTX ISA, cvt.rp.satfinite.ue8m0x2
            return np.exp2(np.clip(np.ceil(np.log2(np.abs(wide))), -127, 127))
        if dtype.name in _SATURATED:
            wide = np.clip(wide, -_SATURATED[dtype.name], _SATURATED[dtype.name])
        return wide.astype(numpy_dtype(dtype)).astype(np.float64)


def rounded_as(values: Array, dtype: DType, mode: str) -> Array:
    """The same by a stated rounding: rn to nearest, rz toward zero, ru up, rd down."""
    nearest = rounded(values, dtype)
    if mode == "rn":
        return nearest
    to = numpy_dtype(dtype)
    if to.itemsize == 8:
        raise CannotInterpret("stated roundings of float64, in which the interpreter itself computes")
    up = values > 0 if mode == "rz" else np.full(values.shape, mode == "rd")  # the nearest may be too large
    wrong = np.where(up, nearest > values, nearest < values)
    toward = np.where(up, -np.inf, np.inf).astype(to)
    return np.where(wrong, np.nextafter(nearest.astype(to), toward), nearest).astype(np.float64)


def stored(values: Array, dtype: DType) -> Array:
    """The values in the type of a caller's array."""
    return rounded(values, dtype).astype(numpy_dtype(dtype))


def reinterpreted(values: Array, source: DType, target: DType) -> Array:
    """The same bits as another type of the same width."""
    return converted(stored(values, source).view(numpy_dtype(target)), target)


def same_bits(values: Array, source: DType, target: DType) -> Array:
    """All elements of a tile as the elements of another type that their bits are."""
    memory = np.ascontiguousarray(in_memory(stored(values, source), source)).reshape(-1)
    held = np.dtype(np.uint8) if target.is_packed else numpy_dtype(target)
    return converted(from_memory(memory.view(np.uint8).view(held), target), target)


def in_memory(values: Array, dtype: DType) -> Array:
    """A caller's array in the kernel's representation: 4-bit elements two per byte, the first in bits 0 to 3."""
    if not dtype.is_packed:
        return values
    codes = values.view(np.uint8) & 15
    return codes[..., ::2] | codes[..., 1::2] << 4


def from_memory(memory: Array, dtype: DType) -> Array:
    """The inverse of in_memory."""
    if not dtype.is_packed:
        return memory
    codes = np.stack((memory & 15, memory >> 4), axis=-1).reshape(*memory.shape[:-1], -1)
    if dtype.kind == "int":
        codes = (codes ^ 8) - 8
    return codes.view(numpy_dtype(dtype)) if dtype.is_float else codes.view(np.int8).astype(numpy_dtype(dtype))


def undefined(shape: tuple[int, ...], dtype: DType) -> Array:
    """Memory that nothing was written to: NaN, and for integers a number that is no sensible index."""
    to = working_dtype(dtype)
    value = np.nan if to.kind == "f" else np.iinfo(to).max if to.kind in "iu" else True
    return np.full(shape, value, to)
