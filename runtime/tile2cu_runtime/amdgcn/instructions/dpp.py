"""Lane permutations of a source operand (DPP), and selection of parts of words (SDWA).

[MI300 ISA, "Data Parallel Processing", "Sub-Dword Addressing"]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import LANES, U32, Array
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import Instruction, Operand
from tile2cu_runtime.amdgcn.instructions.registers import across_lanes

_ROW, _IN_ROW = LANES & ~15, LANES & 15
_ALL = np.ones(64, bool)

# Offset and width in bits of SDWA selections.
SELECTIONS = {
    "DWORD": (0, 32), "WORD_0": (0, 16), "WORD_1": (16, 16),
    "BYTE_0": (0, 8), "BYTE_1": (8, 8), "BYTE_2": (16, 8), "BYTE_3": (24, 8),
}  # fmt: skip


# The source lane and whether it exists, for each DPP control and its count.
_SOURCES: dict[str, Callable[[int], tuple[Array, Array]]] = {
    "row_shl": lambda count: (LANES + count, _IN_ROW + count < 16),
    "row_shr": lambda count: (LANES - count, count <= _IN_ROW),
    "row_ror": lambda count: (_ROW + ((_IN_ROW - count) & 15), _ALL),
    "row_mirror": lambda _: (_ROW + 15 - _IN_ROW, _ALL),
    "row_half_mirror": lambda _: ((LANES & ~7) + 7 - (LANES & 7), _ALL),
    "row_bcast": lambda last: (_ROW - 1, LANES >= 16) if last == 15 else (np.full(64, 31), LANES >= 32),
    "row_newbcast": lambda lane: (_ROW + lane, _ALL),
    "wave_shr": lambda _: (LANES - 1, LANES >= 1),
    "wave_shl": lambda _: (LANES + 1, LANES < 63),
    "wave_ror": lambda _: ((LANES - 1) % 64, _ALL),
    "wave_rol": lambda _: ((LANES + 1) % 64, _ALL),
}


@dataclass(frozen=True)
class Permutation:
    """`source` lane of each lane; `valid` if that lane exists; `writes`: lanes enabled by row and bank masks.

    `zero_fills`: a lane without a valid source reads 0 (bound_ctrl); otherwise it keeps its old value.
    """

    source: Array
    valid: Array
    writes: Array
    zero_fills: bool

    def has_source(self, c: Cohort) -> Array:
        """The lanes whose source lane exists and is active."""
        return self.valid if c.full else self.valid & c.exec[:, self.source]

    def apply(self, getter: Getter) -> Getter:
        def permuted(c: Cohort) -> Array:
            values = across_lanes(c, getter(c))[:, self.source]
            return np.where(self.has_source(c), values, U32(0))

        return permuted

    def lanes_written(self, c: Cohort) -> Array:
        written: Array = c.exec & self.writes
        return written if self.zero_fills else written & self.has_source(c)


def permutation(instruction: Instruction) -> Permutation:
    """The permutation of a DPP instruction."""
    source, valid = _source(instruction)
    rows, banks = instruction.number("row_mask", 0xF), instruction.number("bank_mask", 0xF)
    writes = ((rows >> (LANES // 16)) & (banks >> (LANES % 16 // 4)) & 1).astype(bool)
    zero_fills = "bound_ctrl" in instruction.modifiers
    return Permutation(np.clip(source, 0, 63), valid, writes, zero_fills)


def _source(instruction: Instruction) -> tuple[Array, Array]:
    modifiers = instruction.modifiers
    if "quad_perm" in modifiers:
        order = np.array(instruction.numbers("quad_perm"))
        return (LANES & ~3) + order[LANES & 3], _ALL
    for name, text in modifiers.items():
        if name in _SOURCES:
            return _SOURCES[name](int(text or 0))
    raise UnsupportedInstruction(instruction.text)


def selected(getter: Getter, operand: Operand, selection: str) -> Getter:
    """The bits of a source that SDWA selects, zero- or sign-extended to a word."""
    offset, width = SELECTIONS[selection]
    if width == 32:
        return getter

    def part(c: Cohort) -> Array:
        bits = (getter(c) >> U32(offset)) & U32((1 << width) - 1)
        if operand.sign_extend:
            bits = np.where(bits >> U32(width - 1), bits | U32(0xFFFFFFFF ^ ((1 << width) - 1)), bits)
        result: Array = bits
        return result

    return part
