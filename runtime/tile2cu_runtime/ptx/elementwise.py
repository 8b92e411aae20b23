"""Common parts of register-only instructions: typed values, and functions applied per thread."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.ptx.operands import TYPES, source
from tile2cu_runtime.ptx.parse import Instruction, Kernel
from tile2cu_runtime.ptx.state import Builder, Step, Threads

SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def type_of(instruction: Instruction) -> str:
    """The last type modifier."""
    return next(each for each in reversed(instruction.modifiers) if each in TYPES)


def simple(function: Callable[..., Array]) -> Builder:
    """d = function(a, b, ...), all of the instruction's type."""

    def build(instruction: Instruction, kernel: Kernel) -> Step:
        kind = TYPES[type_of(instruction)]
        target, *rest = instruction.operands
        sources = [source(each, kind, kernel) for each in rest]
        return lambda t: t.write(target, function(*(each(t) for each in sources)).astype(kind, copy=False))

    return build


def float_or(integer: Callable[..., Array], floating: Callable[..., Array]) -> Builder:
    """One function for floats, another for integers; bf16 and packed 16-bit types are computed in float32."""

    def build(instruction: Instruction, kernel: Kernel) -> Step:
        name = type_of(instruction)
        if name in ("f16x2", "bf16x2", "bf16"):
            return halves(instruction, kernel, name, floating)
        return simple(floating if name.startswith("f") else integer)(instruction, kernel)

    return build


def halves(instruction: Instruction, kernel: Kernel, name: str, function: Callable[..., Array]) -> Step:
    target, *rest = instruction.operands
    sources = [source(each, TYPES[name], kernel) for each in rest]

    def step(t: Threads) -> None:
        values = [unpacked(each(t), name) for each in sources]
        t.write(target, packed(np.asarray(function(*values)), name))

    return step


def bits_of(values: Array) -> int:
    return 8 * values.dtype.itemsize


def unpacked(bits: Array, name: str) -> Array:
    """float32 values of f16x2, bf16x2 or bf16: (threads, 2), or (threads, 1)."""
    halves = np.ascontiguousarray(bits).view(np.uint16).reshape(len(bits), -1)
    if name.startswith("bf16"):
        wide: Array = (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return wide
    result: Array = halves.view(np.float16).astype(np.float32)
    return result


def packed(values: Array, name: str) -> Array:
    """The inverse of unpacked, rounded to nearest even."""
    halves = to_bf16(values) if name.startswith("bf16") else values.astype(np.float16).view(np.uint16)
    whole: Array = np.ascontiguousarray(halves).view(np.uint32 if name.endswith("x2") else np.uint16).reshape(-1)
    return whole


def to_bf16(values: Array) -> Array:
    """The bfloat16 bits of float32 values, rounded to nearest even; NaN is 0x7fff."""
    bits = np.ascontiguousarray(values.astype(np.float32)).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    result: Array = np.where(np.isnan(values), np.uint16(0x7FFF), rounded.astype(np.uint16))
    return result


def rounded(instruction: Instruction, exact: Array, kind: type[np.generic]) -> Array:
    """Rounds a float64 to the type, to nearest or as .rm, .rp, .rz specify; .sat clamps to [0, 1]."""
    result = exact.astype(kind)
    modifiers = instruction.modifiers
    if "rm" in modifiers or "rz" in modifiers:
        high = (result > exact) & (("rm" in modifiers) | (exact > 0))
        result = np.where(high, np.nextafter(result, kind(-np.inf)), result)
    if "rp" in modifiers or "rz" in modifiers:
        result = np.where(
            (result < exact) & (("rp" in modifiers) | (exact < 0)), np.nextafter(result, kind(np.inf)), result
        )
    if "sat" in modifiers:
        result = np.where(np.isnan(result), kind(0), np.clip(result, 0, 1))
    return result.astype(kind)


def floating(function: Callable[..., Array]) -> Builder:
    """d = function(a, ...) in float64, rounded once."""

    def build(instruction: Instruction, kernel: Kernel) -> Step:
        name = type_of(instruction)
        if name in ("f16x2", "bf16x2", "bf16"):
            return halves(instruction, kernel, name, lambda *values: function(*(v.astype(np.float64) for v in values)))
        kind = TYPES[name]
        target, *rest = instruction.operands
        sources = [source(each, kind, kernel) for each in rest]

        def step(t: Threads) -> None:
            exact = function(*(each(t).astype(np.float64) for each in sources))
            t.write(target, rounded(instruction, np.asarray(exact), kind))

        return step

    return build
