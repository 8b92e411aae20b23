"""Scalar arithmetic (SOP1, SOP2, SOPK, SOPC). [MI300 ISA, "Scalar ALU Operations"]

A scalar of all waves is an array of shape (waves, 1), so these are vector operations too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I32, I64, U16, U32, U64, Array, join64, sign_extend
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

Function = Callable[..., Any]
# What SCC becomes: unchanged, whether the result is not zero, or the second result of the function.
KEEP, NONZERO, RESULT = "keep", "nonzero", "result"


@dataclass(frozen=True)
class ScalarOperation:
    """`sources` and `result` are type letters; see registers."""

    sources: str
    function: Function
    result: str
    scc: str = NONZERO


def _add_carry(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    return total, total < a


def _sub_borrow(a: Array, b: Array) -> tuple[Array, Array]:
    return a - b, b > a


def _add_overflow(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0


def _sub_overflow(a: Array, b: Array) -> tuple[Array, Array]:
    rest = a - b
    return rest, ((a ^ b) & (a ^ rest)) < 0


def _shift_add(bits: int) -> Function:
    def function(a: Array, b: Array) -> tuple[Array, Array]:
        wide = (a.astype(U64) << U64(bits)) + b
        return wide.astype(U32), (wide >> U64(32)) != 0

    return function


def _bit_field(bits: int, signed: bool) -> Function:
    """Extracts a field; the second source is offset | width << 16."""

    def extract(value: int, field: int) -> int:
        offset, width = field & (bits - 1), min(field >> 16 & 0x7F, bits)
        found = value >> offset & ((1 << width) - 1)
        return sign_extend(found, width) & ((1 << bits) - 1) if signed and width else found

    return _elementwise(extract, U32 if bits == 32 else U64)


def _elementwise(function: Callable[..., int], kind: type[np.generic]) -> Function:
    """A function of Python integers, applied to each wave."""

    def applied(*sources: Array) -> Array:
        shape = np.broadcast_shapes(*(source.shape for source in sources))
        flat = [np.broadcast_to(source, shape).ravel().tolist() for source in sources]
        return np.array([function(*values) for values in zip(*flat, strict=True)], kind).reshape(shape)

    return applied


def _first_one(value: int) -> int:
    return (value & -value).bit_length() - 1 & 0xFFFFFFFF


def _leading_zeros(bits: int) -> Callable[[int], int]:
    return lambda value: bits - value.bit_length() if value else 0xFFFFFFFF


def _reverse(value: int) -> int:
    return int(f"{value:032b}"[::-1], 2)


def _shift64(function: Function) -> Function:
    return lambda a, b: function(a, (b & U32(63)).astype(a.dtype))


_BITWISE: dict[str, Function] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "andn1": lambda a, b: ~a & b,
    "orn1": lambda a, b: ~a | b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
_COMPARE: dict[str, Function] = {
    "eq": np.equal, "lg": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
}  # fmt: skip

TABLE: dict[str, ScalarOperation] = {
    "s_mov_b32": ScalarOperation("u", lambda a: a, "u", KEEP),
    "s_mov_b64": ScalarOperation("q", lambda a: a, "q", KEEP),
    "s_add_u32": ScalarOperation("uu", _add_carry, "u", RESULT),
    "s_sub_u32": ScalarOperation("uu", _sub_borrow, "u", RESULT),
    "s_add_i32": ScalarOperation("ii", _add_overflow, "i", RESULT),
    "s_sub_i32": ScalarOperation("ii", _sub_overflow, "i", RESULT),
    "s_mul_i32": ScalarOperation("uu", np.multiply, "u", KEEP),
    "s_mul_hi_u32": ScalarOperation("uu", lambda a, b: (a.astype(U64) * b) >> U64(32), "u", KEEP),
    "s_mul_hi_i32": ScalarOperation("ii", lambda a, b: (a.astype(I64) * b) >> I64(32), "i", KEEP),
    "s_lshl_b32": ScalarOperation("uu", lambda a, b: a << (b & U32(31)), "u"),
    "s_lshr_b32": ScalarOperation("uu", lambda a, b: a >> (b & U32(31)), "u"),
    "s_ashr_i32": ScalarOperation("ii", lambda a, b: a >> (b & I32(31)), "i"),
    "s_lshl_b64": ScalarOperation("qu", _shift64(np.left_shift), "q"),
    "s_lshr_b64": ScalarOperation("qu", _shift64(np.right_shift), "q"),
    "s_ashr_i64": ScalarOperation("lu", _shift64(np.right_shift), "l"),
    "s_max_i32": ScalarOperation("ii", lambda a, b: (np.maximum(a, b), a > b), "i", RESULT),
    "s_min_i32": ScalarOperation("ii", lambda a, b: (np.minimum(a, b), a < b), "i", RESULT),
    "s_max_u32": ScalarOperation("uu", lambda a, b: (np.maximum(a, b), a > b), "u", RESULT),
    "s_min_u32": ScalarOperation("uu", lambda a, b: (np.minimum(a, b), a < b), "u", RESULT),
    "s_bfe_u32": ScalarOperation("uu", _bit_field(32, False), "u"),
    "s_bfe_i32": ScalarOperation("uu", _bit_field(32, True), "u"),
    "s_bfe_u64": ScalarOperation("qu", _bit_field(64, False), "q"),
    "s_bfe_i64": ScalarOperation("qu", _bit_field(64, True), "q"),
    "s_bfm_b32": ScalarOperation("uu", lambda a, b: ((U32(1) << (a & U32(31))) - U32(1)) << (b & U32(31)), "u", KEEP),
    "s_pack_ll_b32_b16": ScalarOperation("uu", lambda a, b: (a & U32(0xFFFF)) | (b << U32(16)), "u", KEEP),
    "s_pack_lh_b32_b16": ScalarOperation("uu", lambda a, b: (a & U32(0xFFFF)) | (b & U32(0xFFFF0000)), "u", KEEP),
    "s_pack_hh_b32_b16": ScalarOperation("uu", lambda a, b: (a >> U32(16)) | (b & U32(0xFFFF0000)), "u", KEEP),
    "s_not_b32": ScalarOperation("u", np.invert, "u"),
    "s_not_b64": ScalarOperation("q", np.invert, "q"),
    "s_abs_i32": ScalarOperation("i", np.abs, "i"),
    "s_brev_b32": ScalarOperation("u", _elementwise(_reverse, U32), "u", KEEP),
    "s_bcnt1_i32_b32": ScalarOperation("u", _elementwise(lambda a: bin(a).count("1"), U32), "u"),
    "s_bcnt1_i32_b64": ScalarOperation("q", _elementwise(lambda a: bin(a).count("1"), U32), "u"),
    "s_ff1_i32_b32": ScalarOperation("u", _elementwise(_first_one, U32), "u", KEEP),
    "s_ff1_i32_b64": ScalarOperation("q", _elementwise(_first_one, U32), "u", KEEP),
    "s_flbit_i32_b32": ScalarOperation("u", _elementwise(_leading_zeros(32), U32), "u", KEEP),
    "s_flbit_i32_b64": ScalarOperation("q", _elementwise(_leading_zeros(64), U32), "u", KEEP),
    "s_sext_i32_i16": ScalarOperation("u", lambda a: a.astype(U16).view(np.int16).astype(I32), "i", KEEP),
    "s_sext_i32_i8": ScalarOperation("u", lambda a: a.astype(np.uint8).view(np.int8).astype(I32), "i", KEEP),
    **{f"s_lshl{bits}_add_u32": ScalarOperation("uu", _shift_add(bits), "u", RESULT) for bits in (1, 2, 3, 4)},
    **{f"s_{name}_b32": ScalarOperation("uu", function, "u") for name, function in _BITWISE.items()},
    **{f"s_{name}_b64": ScalarOperation("qq", function, "q") for name, function in _BITWISE.items()},
}
_SAVEEXEC = re.compile(r"s_(\w+)_saveexec_b64")
_COMPARISON = re.compile(r"s_cmp(k?)_(\w+)_([iu])(32|64)")
_BIT_TEST = re.compile(r"s_bitcmp([01])_b(32|64)")
_BIT_SET = re.compile(r"s_bitset([01])_b(32|64)")


def build(instruction: Instruction, context: Context) -> Step:
    """The step of a scalar instruction that neither jumps nor loads."""
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
    function = _BITWISE[found[1]]

    def step(c: Cohort) -> None:
        old = join64(c.sgpr[EXEC], c.sgpr[EXEC + 1])
        new = np.broadcast_to(function(source(c), old), old.shape)
        write(c, old)
        set_scalar_pair(c, EXEC, new)
        c.scc = new != 0

    return step


def _comparison(instruction: Instruction, context: Context, found: re.Match[str]) -> Step:
    letter = {"i32": "i", "u32": "u", "i64": "l", "u64": "q"}[found[3] + found[4]]
    first, function = typed(instruction.operands[0], letter, context), _COMPARE[found[2]]
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
            total, c.scc = _add_overflow(old(c), number(c))
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
