"""Cross-lane vector instructions, and those with carries and lane masks.

[MI300 ISA, "VOP1: V_READFIRSTLANE_B32", "VOP3: V_READLANE_B32", "V_MBCNT_LO_U32_B32", "V_CNDMASK_B32"]
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I64, LANES, U32, U64, lanes_of_pair
from tile2cu_runtime.amdgcn.cohort import Cohort, Step
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import VCC, Instruction
from tile2cu_runtime.amdgcn.instructions.compare import set_lane_mask
from tile2cu_runtime.amdgcn.instructions.registers import (
    Context,
    across_lanes,
    put,
    put_pair,
    set_scalar,
    typed,
    word,
)
from tile2cu_runtime.amdgcn.instructions.vector import operand_source, source, writer
from tile2cu_runtime.amdgcn.instructions.vector_integer import count_ones


def read_first_lane(instruction: Instruction, context: Context) -> Step:
    """The lowest active lane's value; lane 0's if none is active."""
    getter, index = word(instruction.operands[1], context), instruction.operands[0].index

    def step(c: Cohort) -> None:
        lane = c.exec.argmax(axis=1)[:, None]
        set_scalar(c, index, np.take_along_axis(across_lanes(c, getter(c)), lane, axis=1))

    return step


def read_lane(instruction: Instruction, context: Context) -> Step:
    getter, lane = word(instruction.operands[1], context), word(instruction.operands[2], context)
    index = instruction.operands[0].index

    def step(c: Cohort) -> None:
        chosen = np.broadcast_to((lane(c) & U32(63)).astype(I64), (len(c), 1))
        set_scalar(c, index, np.take_along_axis(across_lanes(c, getter(c)), chosen, axis=1))

    return step


def write_lane(instruction: Instruction, context: Context) -> Step:
    value, lane = word(instruction.operands[1], context), word(instruction.operands[2], context)
    row = context.row(instruction.operands[0])

    def step(c: Cohort) -> None:
        chosen = np.broadcast_to((lane(c) & U32(63)).astype(I64), (len(c), 1))
        np.put_along_axis(c.vgpr[row], chosen, np.broadcast_to(value(c), (len(c), 1)), axis=1)

    return step


def swap(instruction: Instruction, context: Context) -> Step:
    first, second = (context.row(operand) for operand in instruction.operands)

    def step(c: Cohort) -> None:
        a, b = c.vgpr[first].copy(), c.vgpr[second].copy()
        put(c, first, b)
        put(c, second, a)

    return step


def permute_swap(instruction: Instruction, context: Context) -> Step:
    """v_permlane16_swap, v_permlane32_swap (gfx950): swaps odd lane groups of the first with even ones of the
    second.
    """
    size = int(instruction.name[len("v_permlane") :][:2])
    first, second = (context.row(operand) for operand in instruction.operands)
    odd = LANES // size % 2 == 1
    partner = np.where(odd, LANES - size, LANES + size)

    def step(c: Cohort) -> None:
        a, b = c.vgpr[first].copy(), c.vgpr[second].copy()
        put(c, first, np.where(odd, b[:, partner], a))
        put(c, second, np.where(odd, b, a[:, partner]))

    return step


def mask_bit_count(instruction: Instruction, context: Context) -> Step:
    """v_mbcnt_lo, v_mbcnt_hi: the mask bits of lower lanes, counted, plus the second source."""
    high = instruction.name == "v_mbcnt_hi_u32_b32"
    mask, base = word(instruction.operands[1], context), word(instruction.operands[2], context)
    position = np.clip(LANES - 32 if high else LANES, 0, 32).astype(U64)
    below = ((U64(1) << position) - U64(1)).astype(U32)
    row = context.row(instruction.operands[0])
    return lambda c: put(c, row, count_ones(mask(c) & below) + base(c))


def conditional(instruction: Instruction, context: Context) -> Step:
    """v_cndmask_b32: the second source where the mask bit is set, else the first."""
    letter = "f" if any(operand.negate or operand.absolute for operand in instruction.operands[1:3]) else "u"
    first, second = (source(instruction, number, letter, context) for number in (0, 1))
    index = instruction.operands[3].index if len(instruction.operands) > 3 else VCC
    write = writer(instruction, letter, context)

    def step(c: Cohort) -> None:
        lanes = lanes_of_pair(c.sgpr[index], c.sgpr[index + 1])
        write(c, np.where(lanes, second(c), first(c)))

    return step


_CARRY = re.compile(r"v_(add|sub|subrev|addc|subb|subbrev)_co_u32")


def with_carry(instruction: Instruction, context: Context) -> Step:
    """v_add_co_u32 and similar: destination, carry out, two sources, optional carry in."""
    found = _CARRY.fullmatch(instruction.name)
    if not found:
        raise UnsupportedInstruction(instruction.text)
    operands = instruction.operands
    first, second = (operand_source(instruction, operands[2 + number], number, "u", context) for number in (0, 1))
    if found[1].endswith("rev"):
        first, second = second, first
    carry_in = operands[4].index if len(operands) > 4 else None
    row, carry_out, subtracts = context.row(operands[0]), operands[1].index, found[1].startswith("sub")

    def step(c: Cohort) -> None:
        a, b = first(c).astype(I64), second(c).astype(I64)
        if carry_in is not None:
            b = b + lanes_of_pair(c.sgpr[carry_in], c.sgpr[carry_in + 1])
        wide = a - b if subtracts else a + b
        put(c, row, wide.astype(U32))
        set_lane_mask(c, carry_out, (wide < 0) | (wide >> I64(32) > 0))

    return step


def multiply_add_64(instruction: Instruction, context: Context) -> Step:
    """v_mad_u64_u32, v_mad_i64_i32. The carry out is not computed."""
    letter, kind = ("u", "q") if instruction.name == "v_mad_u64_u32" else ("i", "l")
    operands = instruction.operands
    first, second = (typed(operand, letter, context) for operand in operands[2:4])
    third, row = typed(operands[4], kind, context), context.row(operands[0])
    wide = U64 if kind == "q" else I64

    def step(c: Cohort) -> None:
        put_pair(c, row, first(c).astype(wide) * second(c) + third(c))

    return step


def division_scale(instruction: Instruction, context: Context) -> Step:
    """v_div_scale: returns the source unscaled, with the flag clear. v_div_fixup computes the quotient."""
    letter = "d" if instruction.name.endswith("64") else "f"
    getter, index = typed(instruction.operands[2], letter, context), instruction.operands[1].index
    write = writer(instruction, letter, context)

    def step(c: Cohort) -> None:
        write(c, across_lanes(c, getter(c)))
        set_lane_mask(c, index, np.zeros((1, 1), bool))

    return step


BUILDERS: dict[str, Callable[[Instruction, Context], Step]] = {
    "v_readfirstlane_b32": read_first_lane,
    "v_readlane_b32": read_lane,
    "v_writelane_b32": write_lane,
    "v_swap_b32": swap,
    "v_permlane16_swap_b32": permute_swap,
    "v_permlane32_swap_b32": permute_swap,
    "v_mbcnt_lo_u32_b32": mask_bit_count,
    "v_mbcnt_hi_u32_b32": mask_bit_count,
    "v_cndmask_b32": conditional,
    "v_mad_u64_u32": multiply_add_64,
    "v_mad_i64_i32": multiply_add_64,
    "v_div_scale_f32": division_scale,
    "v_div_scale_f64": division_scale,
    **{f"v_{name}_co_u32": with_carry for name in ("add", "sub", "subrev", "addc", "subb", "subbrev")},
}
