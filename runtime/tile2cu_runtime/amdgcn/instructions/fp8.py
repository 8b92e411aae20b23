"""Conversions between float32 and 8-bit floats. [MI300 ISA, "VOP1: V_CVT_F32_FP8", "VOP3: V_CVT_PK_FP8_F32"]"""

from __future__ import annotations

import re

from tile2cu_runtime.amdgcn.arrays import U32
from tile2cu_runtime.amdgcn.cohort import Cohort, Step
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.formats import encode, fp8_formats, table
from tile2cu_runtime.amdgcn.instruction import Instruction
from tile2cu_runtime.amdgcn.instructions.dpp import SELECTIONS
from tile2cu_runtime.amdgcn.instructions.registers import Context, across_lanes, put, typed, word
from tile2cu_runtime.amdgcn.instructions.vector import put_half

_FROM = re.compile(r"v_cvt_(pk_)?f32_(fp8|bf8)")
_TO = re.compile(r"v_cvt_pk_(fp8|bf8)_f32")
# The byte that op_sel selects in the VOP3 form of v_cvt_f32_fp8.
_BYTE_OF_OP_SEL = {(0, 0): 0, (1, 0): 8, (0, 1): 16, (1, 1): 24}


def build(instruction: Instruction, context: Context) -> Step:
    """Builds the conversions in both directions."""
    if found := _FROM.fullmatch(instruction.name):
        return _to_float32(instruction, context, pair=bool(found[1]), form=found[2])
    if found := _TO.fullmatch(instruction.name):
        return _from_float32(instruction, context, found[1])
    raise UnsupportedInstruction(instruction.text)


def _to_float32(instruction: Instruction, context: Context, *, pair: bool, form: str) -> Step:
    values = table(fp8_formats(context.target)[form]).view(U32)
    getter, row = word(instruction.operands[1], context), context.row(instruction.operands[0])
    offset = _bit_offset(instruction, pair)

    def step(c: Cohort) -> None:
        codes = across_lanes(c, getter(c)) >> U32(offset)
        put(c, row, values[codes & U32(255)])
        if pair:
            put(c, row + 1, values[(codes >> U32(8)) & U32(255)])

    return step


def _bit_offset(instruction: Instruction, pair: bool) -> int:
    """The bit offset of the codes in the word, by SDWA or op_sel."""
    if instruction.encoding == "sdwa":
        return SELECTIONS[instruction.modifiers.get("src0_sel", "DWORD")][0]
    halves = instruction.numbers("op_sel")
    if not halves:
        return 0
    return 16 * halves[0] if pair else _BYTE_OF_OP_SEL[halves[0], halves[1]]


def _from_float32(instruction: Instruction, context: Context, form: str) -> Step:
    a, b = (typed(operand, "f", context) for operand in instruction.operands[1:3])
    halves, row = instruction.numbers("op_sel"), context.row(instruction.operands[0])
    high, target = bool(halves and halves[-1]), fp8_formats(context.target)[form]

    def step(c: Cohort) -> None:
        codes = encode(a(c), target) | (encode(b(c), target) << U32(8))
        put_half(c, row, codes, high=high)

    return step
