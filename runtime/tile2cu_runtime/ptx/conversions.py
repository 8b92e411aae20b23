"""Conversions between types, and between generic addresses and those of a state space. [PTX ISA 9.0, "cvt", "cvta"]"""

from __future__ import annotations

from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.ptx import float8
from tile2cu_runtime.ptx.elementwise import packed, rounded, to_bf16, unpacked
from tile2cu_runtime.ptx.operands import TYPES, source
from tile2cu_runtime.ptx.parse import Instruction, Kernel
from tile2cu_runtime.ptx.state import LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, Builder, Step, Threads

_TO_INTEGER = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}


def convert(instruction: Instruction, kernel: Kernel) -> Step:
    """cvt between integers and floats; with two sources the first becomes the high half."""
    if any(each in _FLOAT8 for each in instruction.modifiers):
        return _convert_float8(instruction, kernel)
    to, *rest = [each for each in instruction.modifiers if each in TYPES]
    of = rest[0]
    target, *values = instruction.operands
    sources = [source(each, TYPES[of], kernel) for each in values]
    if to in ("f16x2", "bf16x2"):
        high, low = sources
        return lambda t: t.write(target, packed(np.stack((low(t), high(t)), axis=1), to))
    if to == "tf32":
        return lambda t: t.write(target, _to_tf32(sources[0](t)))
    (get,) = sources

    def step(t: Threads) -> None:
        value = unpacked(get(t), "bf16")[:, 0] if of == "bf16" else get(t)
        t.write(target, _converted(instruction, value, to))

    return step


_FLOAT8 = {"e4m3x2": "e4m3", "e5m2x2": "e5m2"}


def _convert_float8(instruction: Instruction, kernel: Kernel) -> Step:
    """Pairs of 8-bit floats from two f32, the high one first, or from f16x2, and to f16x2."""
    to, of = instruction.modifiers[-2:]
    target, *values = instruction.operands
    if of in _FLOAT8:
        pair = source(values[0], np.uint16, kernel)

        def widen(t: Threads) -> None:
            codes = np.ascontiguousarray(pair(t)).view(np.uint8).reshape(t.count, 2)
            t.write(target, packed(float8.decoded(codes, _FLOAT8[of]), to))

        return widen
    sources = [source(each, TYPES[of], kernel) for each in values]

    def narrow(t: Threads) -> None:
        wide = unpacked(sources[0](t), of) if of == "f16x2" else np.stack([each(t) for each in sources[::-1]], axis=1)
        t.write(target, float8.encoded(wide, _FLOAT8[to]).view(np.uint16).reshape(-1))

    return narrow


def _converted(instruction: Instruction, value: Array, to: str) -> Array:
    if to == "bf16":
        return to_bf16(value.astype(np.float32))
    kind: Any = TYPES[to]
    if to.startswith("f"):
        rounding = next((each for each in instruction.modifiers if each in _TO_INTEGER), None)
        return rounded(instruction, (_TO_INTEGER[rounding](value) if rounding else value).astype(np.float64), kind)
    if value.dtype.kind == "f":
        rounding = next(each for each in instruction.modifiers if each in _TO_INTEGER)
        found = _clamped(_TO_INTEGER[rounding](value.astype(np.float64)), kind)
        if 8 in (value.dtype.itemsize, found.dtype.itemsize):  # of f64, or to 64 bits: the highest bit alone
            found[np.isnan(value)] = np.array(1 << (8 * found.dtype.itemsize - 1), np.uint64).astype(kind)
        return found
    if "sat" in instruction.modifiers:
        limits = np.iinfo(kind)
        value = np.clip(value.astype(object), int(limits.min), int(limits.max))
    result: Array = value.astype(kind)
    return result


def _clamped(value: Array, kind: Any) -> Array:
    """Floats to integers: NaN is 0, overflow saturates."""
    limits = np.iinfo(kind)
    inside = np.clip(np.nan_to_num(value, nan=0.0), float(limits.min), float(limits.max))
    plain = np.where(inside >= float(limits.max), 0.0, inside).astype(kind)
    result: Array = np.where(inside >= float(limits.max), kind(limits.max), plain)
    return result


def _to_tf32(value: Array) -> Array:
    """10 mantissa bits, ties away from zero (cvt.rna.tf32.f32)."""
    bits = np.ascontiguousarray(value).view(np.uint32)
    result: Array = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return result


def _to_space(instruction: Instruction, kernel: Kernel) -> Step:
    """cvta: converts between generic addresses and those of a state space. Global addresses are generic addresses."""
    target, value = instruction.operands
    get = source(value, np.uint64, kernel)
    spaces = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAMETER_WINDOW, "global": 0}
    window = np.uint64(next(spaces[each] for each in instruction.modifiers if each in spaces))
    if "to" in instruction.modifiers:
        return lambda t: t.write(target, get(t) - window)
    return lambda t: t.write(target, get(t) + window)


BUILDERS: dict[str, Builder] = {"cvt": convert, "cvta": _to_space}
