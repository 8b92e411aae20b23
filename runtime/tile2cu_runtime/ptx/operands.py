"""Operands as functions of the threads: registers, constants, addresses."""

from __future__ import annotations

import re

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.parse import Kernel
from tile2cu_runtime.ptx.state import Getter

# The NumPy type of a PTX type. bf16 and tf32 are kept as bits.
TYPES: dict[str, type[np.generic]] = {
    "pred": np.bool_, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.uint16,
    "f16x2": np.uint32, "bf16x2": np.uint32, "tf32": np.uint32,
}  # fmt: skip
for _bits in (8, 16, 32, 64):
    TYPES |= {f"s{_bits}": getattr(np, f"int{_bits}"), f"u{_bits}": getattr(np, f"uint{_bits}")}
    TYPES |= {f"b{_bits}": getattr(np, f"uint{_bits}")}

_INTEGER = re.compile(r"-?(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
_FLOAT = re.compile(r"0([fFdD])([0-9a-fA-F]+)$")
_ADDRESS = re.compile(r"\[([%\w$@]+)?(?:\+?(-?\d+))?\]$")


def constant(text: str) -> int | float | None:
    """A number, or None for other text. 0f3F800000 is the float32 with these bits."""
    if found := _FLOAT.match(text):
        kind = np.float32 if found[1] in "fF" else np.float64
        return float(np.array(int(found[2], 16), f"u{np.dtype(kind).itemsize}").view(kind))
    return int(text.rstrip("U"), 0) if _INTEGER.match(text) else None


def source(text: str, kind: type[np.generic], kernel: Kernel) -> Getter:
    """An operand's values as this type: (threads,). A wider register gives its low bits."""
    number = constant(text)
    if number is not None:
        values = _constant(number, kind)
        return lambda t: np.broadcast_to(values, t.count)
    if text.startswith("!"):
        inner = source(text[1:], kind, kernel)
        return lambda t: ~inner(t)
    if text in kernel.registers:
        size, wanted = kernel.registers[text], np.dtype(kind).itemsize
        if kind is np.bool_:
            return lambda t: t.registers[text]
        if size == wanted:
            return lambda t: t.registers[text].view(kind)
        return lambda t: t.registers[text].astype(f"u{wanted}").view(kind)
    if text.startswith("%"):
        return lambda t: t.special(text).astype(kind)
    if text in kernel.symbols:
        address = np.array(kernel.symbols[text].offset).astype(kind)
        return lambda t: np.broadcast_to(address, t.count)
    raise PtxError(f"the operand {text}")


def _constant(number: int | float, kind: type[np.generic]) -> Array:
    if isinstance(number, float) or np.issubdtype(kind, np.floating) or kind is np.bool_:
        return np.array(number).astype(kind)
    bits = 8 * np.dtype(kind).itemsize
    return np.array(number & ((1 << bits) - 1), f"u{bits // 8}").view(kind)


def address(text: str, kernel: Kernel) -> Getter:
    """[register+offset], [symbol+offset] or [number]: int64."""
    found = _ADDRESS.match(text.replace(" ", ""))
    if not found or not found[1]:
        raise PtxError(f"the address {text}")
    offset = int(found[2] or 0)
    if found[1].isdigit():
        return lambda t: np.full(t.count, int(found[1]) + offset, np.int64)
    if found[1] in kernel.symbols:
        place = kernel.symbols[found[1]].offset + offset
        return lambda t: np.full(t.count, place, np.int64)
    size = kernel.registers[found[1]]
    base = source(found[1], np.uint32 if size == 4 else np.uint64, kernel)
    return lambda t: base(t).astype(np.int64) + offset


def elements(text: str) -> list[str]:
    """The registers of {a, b}, or of a single register."""
    return [part.strip() for part in text.strip("{}").split(",")] if text.startswith("{") else [text]
