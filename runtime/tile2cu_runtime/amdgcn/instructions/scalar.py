"""Scalar instructions (SOP1, SOP2, SOPK, SOPC) except branches and loads. [MI300 ISA, "Scalar ALU Operations"]"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I32, I64, U32, U64, Array, join64, sign_extend
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter, Step
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import EXEC, Instruction, Operand
from tile2cu_runtime.amdgcn.instructions.registers import (
    BITS,
    Context,
    constant,
    set_scalar,
    set_scalar_pair,
    typed,
)
from tile2cu_runtime.amdgcn.instructions.scalar_table import BITWISE, COMPARE, NONZERO, RESULT, TABLE, add_overflow

_SAVEEXEC = re.compile(r"s_(\w+)_saveexec_b64")
_COMPARISON = re.compile(r"s_cmp(k?)_(\w+)_([iu])(32|64)")
_BIT_TEST = re.compile(r"s_bitcmp([01])_b(32|64)")
_BIT_SET = re.compile(r"s_bitset([01])_b(32|64)")


def build(instruction: Instruction, context: Context) -> Step:
    """The step of a scalar instruction that is neither a branch nor a load."""
    name = instruction.name
    if name in TABLE:
        return _from_table(instruction, context)
    if name in _SPECIAL:
        return _SPECIAL[name](instruction, context)
    for pattern, builder in _PATTERNS:
        if found := pattern.fullmatch(name):
            return builder(instruction, context, found)
    raise UnsupportedInstruction(instruction.text)


def _target(operand: Operand, letter: str) -> Callable[[Cohort, Array], None]:
    index = operand.index
    if BITS[letter] == 64:
        return lambda c, value: set_scalar_pair(c, index, value)
    return lambda c, value: set_scalar(c, index, value.astype(I32).view(U32) if letter == "i" else value.astype(U32))


def _from_table(instruction: Instruction, context: Context) -> Step:
    operation = TABLE[instruction.name]
    getters = [
        typed(operand, letter, context)
        for operand, letter in zip(instruction.operands[1:], operation.sources, strict=True)
    ]
    write, function, scc = _target(instruction.operands[0], operation.result), operation.function, operation.scc

    def step(c: Cohort) -> None:
        result = function(*[getter(c) for getter in getters])
        if scc == RESULT:
            result, flag = result
            c.scc = np.broadcast_to(flag, c.scc.shape).copy()
        write(c, result)
        if scc == NONZERO:
            c.scc = np.broadcast_to(result != 0, c.scc.shape).copy()

    return step


# ---- families by pattern ----------------------------------------------------------------------------------------


def _save_exec(instruction: Instruction, context: Context, found: re.Match[str]) -> Step:
    source, write = typed(instruction.operands[1], "q", context), _target(instruction.operands[0], "q")
    function = BITWISE[found[1]]

    def step(c: Cohort) -> None:
        old = join64(c.sgpr[EXEC], c.sgpr[EXEC + 1])
        new = np.broadcast_to(function(source(c), old), old.shape)
        write(c, old)
        set_scalar_pair(c, EXEC, new)
        c.scc = new != 0

    return step


def _comparison(instruction: Instruction, context: Context, found: re.Match[str]) -> Step:
    letter = {"i32": "i", "u32": "u", "i64": "l", "u64": "q"}[found[3] + found[4]]
    first, function = typed(instruction.operands[0], letter, context), COMPARE[found[2]]
    second = typed(instruction.operands[1], letter, context)
    if found[1]:
        second = _immediate16(instruction, letter)

    def step(c: Cohort) -> None:
        c.scc = np.broadcast_to(function(first(c), second(c)), c.scc.shape).copy()

    return step


def _immediate16(instruction: Instruction, letter: str) -> Getter:
    """The 16-bit constant of SOPK, sign-extended for signed types."""
    value = instruction.operands[1].constant() & 0xFFFF
    number = constant(sign_extend(value, 16) if letter == "i" else value, U32).view(I32 if letter == "i" else U32)
    return lambda c: number


def _bit_test(instruction: Instruction, context: Context, found: re.Match[str]) -> Step:
    letter = "q" if found[2] == "64" else "u"
    value, bit = typed(instruction.operands[0], letter, context), typed(instruction.operands[1], "u", context)
    wanted, last = int(found[1]), int(found[2]) - 1

    def step(c: Cohort) -> None:
        bits = value(c)
        flag = (bits >> (bit(c) & U32(last)).astype(bits.dtype) & bits.dtype.type(1)) == wanted
        c.scc = np.broadcast_to(flag, c.scc.shape).copy()

    return step


def _bit_set(instruction: Instruction, context: Context, found: re.Match[str]) -> Step:
    letter, last = ("q" if found[2] == "64" else "u"), int(found[2]) - 1
    old, bit = typed(instruction.operands[0], letter, context), typed(instruction.operands[1], "u", context)
    write, sets = _target(instruction.operands[0], letter), found[1] == "1"

    def step(c: Cohort) -> None:
        bits = old(c)
        one = bits.dtype.type(1) << (bit(c) & U32(last)).astype(bits.dtype)
        write(c, bits | one if sets else bits & ~one)

    return step


_PATTERNS = (
    (_SAVEEXEC, _save_exec),
    (_COMPARISON, _comparison),
    (_BIT_TEST, _bit_test),
    (_BIT_SET, _bit_set),
)


# ---- one of a kind ----------------------------------------------------------------------------------------------


def _with_carry(instruction: Instruction, context: Context) -> Step:
    first, second = (typed(operand, "u", context) for operand in instruction.operands[1:])
    index, subtracts = instruction.operands[0].index, instruction.name == "s_subb_u32"

    def step(c: Cohort) -> None:
        a, b, carry = first(c).astype(I64), second(c).astype(I64), c.scc.astype(I64)
        wide = a - b - carry if subtracts else a + b + carry
        c.scc = np.broadcast_to((wide < 0) | (wide >> I64(32) > 0), c.scc.shape).copy()
        set_scalar(c, index, wide.astype(U32))

    return step


def _select(instruction: Instruction, context: Context) -> Step:
    letter = "q" if instruction.name.endswith("64") else "u"
    first, second = (typed(operand, letter, context) for operand in instruction.operands[1:])
    write = _target(instruction.operands[0], letter)
    return lambda c: write(c, np.where(c.scc, first(c), second(c)))


def _conditional_move(instruction: Instruction, context: Context) -> Step:
    letter = "q" if instruction.name.endswith("64") else "u"
    old, new = (typed(operand, letter, context) for operand in instruction.operands[:2])
    write = _target(instruction.operands[0], letter)
    return lambda c: write(c, np.where(c.scc, new(c), old(c)))


def _with_immediate(instruction: Instruction, context: Context) -> Step:
    """s_movk_i32, s_addk_i32, s_mulk_i32, s_cmovk_i32."""
    number, old = _immediate16(instruction, "i"), typed(instruction.operands[0], "i", context)
    write, name = _target(instruction.operands[0], "i"), instruction.name

    def step(c: Cohort) -> None:
        if name == "s_movk_i32":
            write(c, number(c))
        elif name == "s_mulk_i32":
            write(c, old(c) * number(c))
        elif name == "s_cmovk_i32":
            write(c, np.where(c.scc, number(c), old(c)))
        else:
            total, c.scc = add_overflow(old(c), number(c))
            write(c, total)

    return step


def _program_counter(instruction: Instruction, context: Context) -> Step:
    write = _target(instruction.operands[0], "q")
    return lambda c: write(c, np.full((len(c), 1), c.batch.code_base + instruction.next_address, U64))


def _zero(instruction: Instruction, context: Context) -> Step:
    """Clocks and hardware registers read as zero: the simulation has no time."""
    letter = "u" if instruction.name == "s_getreg_b32" else "q"
    write, nothing = _target(instruction.operands[0], letter), constant(0, U64 if letter == "q" else U32)
    return lambda c: write(c, nothing)


_SPECIAL: dict[str, Callable[[Instruction, Context], Step]] = {
    "s_addc_u32": _with_carry,
    "s_subb_u32": _with_carry,
    "s_cselect_b32": _select,
    "s_cselect_b64": _select,
    "s_cmov_b32": _conditional_move,
    "s_cmov_b64": _conditional_move,
    "s_movk_i32": _with_immediate,
    "s_addk_i32": _with_immediate,
    "s_mulk_i32": _with_immediate,
    "s_cmovk_i32": _with_immediate,
    "s_getpc_b64": _program_counter,
    "s_memtime": _zero,
    "s_memrealtime": _zero,
    "s_getreg_b32": _zero,
}
