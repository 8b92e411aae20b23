"""Scalar loads (SMEM). They return out of order: only lgkmcnt(0) guarantees their completion. [MI300 ISA, "Scalar
Memory"]
"""

from __future__ import annotations

import re

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I64, U64, Array, join64
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter, Step, Transfer
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import EXEC, Instruction
from tile2cu_runtime.amdgcn.instructions.registers import Context, constant, word

_LOAD = re.compile(r"s_(buffer_)?load_dword(?:x(\d+))?")


def build(instruction: Instruction, context: Context) -> Step:
    """s_load_dword* and s_buffer_load_dword*."""
    found = _LOAD.fullmatch(instruction.name)
    if not found:
        raise UnsupportedInstruction(instruction.text)
    words, first, base = int(found[2] or 1), instruction.operands[0].index, instruction.operands[1].index
    mask = U64(0xFFFF_FFFF_FFFF if found[1] else 0xFFFF_FFFF_FFFF_FFFF)
    offset, registers = _offset(instruction, context), instruction.operands[0].register_bits()

    def land(c: Cohort, transfer: Transfer) -> None:
        assert transfer.values is not None
        c.sgpr[first : first + words] = transfer.values
        if first + words > EXEC:
            c.exec_changed()

    def step(c: Cohort) -> None:
        address = (join64(c.sgpr[base], c.sgpr[base + 1]) & mask).astype(I64) + offset(c)
        at, inside = c.batch.global_place(c, instruction, address & ~I64(3), 4 * words, None)
        loaded = np.stack([c.batch.memory.store.load(at + 4 * number, 4)[0] for number in range(words)])
        if inside is not None:
            loaded = np.where(inside, loaded, loaded.dtype.type(0xCBCBCBCB))
        transfer = Transfer(instruction=instruction, registers=registers, land=land, values=loaded, unordered=True)
        c.issue(transfer, c.lgkm)

    return step


def _offset(instruction: Instruction, context: Context) -> Getter:
    operand = instruction.operands[2]
    extra = instruction.number("offset") if operand.is_scalar else 0
    if not operand.is_scalar:
        fixed = constant(operand.constant(), U64).view(I64)
        return lambda c: fixed
    register = word(operand, context)

    def offset(c: Cohort) -> Array:
        total: Array = register(c).astype(I64) + extra
        return total

    return offset
