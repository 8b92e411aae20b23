"""Reading operands as typed arrays, and writing registers under the EXEC mask.

A type is a letter: u i f 32-bit unsigned, signed, float; h w x 16-bit float, unsigned, signed; d q l 64-bit float,
unsigned, signed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import (
    F16,
    F32,
    F64,
    I16,
    I32,
    I64,
    MASK32,
    MASK64,
    U16,
    U32,
    U64,
    Array,
    join64,
)
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter
from tile2cu_runtime.amdgcn.instruction import EXEC, Operand

TYPES: dict[str, type[np.generic]] = {
    "u": U32, "i": I32, "f": F32, "h": F16, "w": U16, "x": I16, "d": F64, "q": U64, "l": I64,
}  # fmt: skip
BITS = {"u": 32, "i": 32, "f": 32, "h": 16, "w": 16, "x": 16, "d": 64, "q": 64, "l": 64}
FLOATS = "fhd"
_UNSIGNED: dict[int, type[np.generic]] = {16: U16, 32: U32, 64: U64}


@dataclass(frozen=True)
class Context:
    """The target and kernel properties that decoding uses. Accumulation registers follow the others in rows."""

    target: str
    accumulation_offset: int

    def row(self, operand: Operand, number: int = 0) -> int:
        """The row of Cohort.vgpr of an operand's register index."""
        return operand.index + number + (self.accumulation_offset if operand.kind == "a" else 0)

    def rows(self, operand: Operand) -> slice:
        return slice(self.row(operand), self.row(operand) + operand.count)


def constant(value: int, kind: type[np.generic]) -> Array:
    """A (1, 1) array; the value is truncated to the type's width."""
    bits = 8 * np.dtype(kind).itemsize
    return np.array([[value & ((1 << bits) - 1)]], _UNSIGNED[bits])


def word(operand: Operand, context: Context, float_bits: int = 32) -> Getter:
    """The operand's (first) 32-bit word, uint32, broadcastable to (waves, 64)."""
    if operand.is_vector:
        row = context.row(operand)
        return lambda c: c.vgpr[row]
    if operand.is_scalar:
        index = operand.index
        return lambda c: c.sgpr[index]
    if operand.text in ("scc", "src_scc"):
        return lambda c: c.scc.astype(U32)
    value = constant(operand.constant(float_bits) & MASK32, U32)
    return lambda c: value


def pair(operand: Operand, context: Context, *, is_float: bool = False) -> Getter:
    """The operand's two words as uint64. A 32-bit literal is the high half of a float64."""
    if operand.is_vector:
        row = context.row(operand)
        return lambda c: join64(c.vgpr[row], c.vgpr[row + 1])
    if operand.is_scalar:
        index = operand.index
        return lambda c: join64(c.sgpr[index], c.sgpr[index + 1])
    bits = operand.constant(64)
    if operand.text.startswith("src_") or (is_float and operand.text.startswith("0x")):
        bits <<= 32
    value = constant(bits & MASK64, U64)
    return lambda c: value


def typed(operand: Operand, letter: str, context: Context) -> Getter:
    """The operand as an array of the type, with its sign modifiers."""
    bits, kind = BITS[letter], TYPES[letter]
    if bits == 64:
        return modified(pair(operand, context, is_float=letter == "d"), operand, letter)
    raw = word(operand, context, bits)
    if letter == "u":
        return raw
    if bits == 16:
        return modified(lambda c: raw(c).astype(U16), operand, letter)
    if operand.negate or operand.absolute:
        return modified(raw, operand, letter)
    return lambda c: raw(c).view(kind)


def modified(raw: Getter, operand: Operand, letter: str) -> Getter:
    """Bits as the type, after `|x|` and `-x` on floats."""
    kind, unsigned = TYPES[letter], _UNSIGNED[BITS[letter]]
    sign = unsigned(1 << (BITS[letter] - 1))
    if letter not in FLOATS or not (operand.negate or operand.absolute):
        return lambda c: raw(c).view(kind)

    def getter(c: Cohort) -> Array:
        bits = raw(c)
        if operand.absolute:
            bits = bits & ~sign
        if operand.negate:
            bits = bits ^ sign
        return bits.view(kind)

    return getter


def put(c: Cohort, row: int, value: Array) -> None:
    """Writes uint32 to a vector register's active lanes."""
    if c.full:
        c.vgpr[row] = value
    else:
        np.copyto(c.vgpr[row], value, where=c.exec)


def put_pair(c: Cohort, row: int, value: Array) -> None:
    """Writes 64-bit values to two vector registers' active lanes."""
    bits = value.view(U64)
    put(c, row, bits.astype(U32))
    put(c, row + 1, (bits >> U64(32)).astype(U32))


def as_word(value: Array, letter: str) -> Array:
    """A result of up to 32 bits as register contents; 16-bit results are zero-extended."""
    if BITS[letter] == 16:
        return value.view(U16).astype(U32)
    return value if letter == "u" else value.view(U32)


def set_scalar(c: Cohort, index: int, value: Array) -> None:
    """Writes uint32, (waves, 1), to a scalar register."""
    c.sgpr[index] = value
    if index >= EXEC:
        c.exec_changed()


def set_scalar_pair(c: Cohort, index: int, value: Array) -> None:
    """Writes uint64, (waves, 1), to two scalar registers."""
    bits = value.view(U64)
    c.sgpr[index] = bits.astype(U32)
    c.sgpr[index + 1] = (bits >> U64(32)).astype(U32)
    if index >= EXEC:
        c.exec_changed()


def across_lanes(c: Cohort, value: Array) -> Array:
    """The value broadcast to one entry per lane, (waves, 64)."""
    return value if value.shape[1] == 64 and len(value) == len(c) else np.broadcast_to(value, (len(c), 64))
