"""Table-driven vector instructions: sources and result with modifiers, SDWA, DPP and op_sel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile2cu_runtime.amdgcn.arrays import U16, U32, Array
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter, Step
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import Instruction, Operand
from tile2cu_runtime.amdgcn.instructions import vector_float, vector_integer
from tile2cu_runtime.amdgcn.instructions.dpp import SELECTIONS, permutation, selected
from tile2cu_runtime.amdgcn.instructions.registers import (
    BITS,
    FLOATS,
    TYPES,
    Context,
    as_word,
    modified,
    put,
    put_pair,
    typed,
    word,
)
from tile2cu_runtime.amdgcn.instructions.vector_integer import VectorOperation

TABLE: dict[str, VectorOperation] = {**vector_integer.TABLE, **vector_float.TABLE}
_OUTPUT_FACTORS = {("mul", "2"): 2.0, ("mul", "4"): 4.0, ("div", "2"): 0.5}
# 16-bit instructions that preserve the upper half of their destination. [MI300 ISA, "VOP3", op_sel]
_KEEP_UPPER_HALF = frozenset(("v_fma_f16", "v_mad_u16", "v_mad_i16", "v_div_fixup_f16"))

Writer = Callable[[Cohort, Array], None]


def build(instruction: Instruction, context: Context) -> Step:
    """The step of an instruction in TABLE."""
    operation = TABLE.get(instruction.name)
    if operation is None:
        raise UnsupportedInstruction(instruction.text)
    sources = [source(instruction, number, letter, context) for number, letter in enumerate(operation.sources)]
    if fast := _fast_step(instruction, operation, sources, context):
        return fast
    write = writer(instruction, operation.result, context)
    return _applied(operation.function, sources, write)


def _applied(function: Callable[..., Array], sources: list[Getter], write: Writer) -> Step:
    match sources:
        case [a]:
            return lambda c: write(c, function(a(c)))
        case [a, b]:
            return lambda c: write(c, function(a(c), b(c)))
        case [a, b, d]:
            return lambda c: write(c, function(a(c), b(c), d(c)))
    raise AssertionError(len(sources))


def _fast_step(
    instruction: Instruction, operation: VectorOperation, sources: list[Getter], context: Context
) -> Step | None:
    """A NumPy function of 32-bit sources with a plain result: writes into the register without a copy."""
    function, letter = operation.function, operation.result
    if not isinstance(function, np.ufunc) or len(sources) != 2 or BITS[letter] != 32:
        return None
    if instruction.encoding in ("dpp", "sdwa", "e64_dpp") or instruction.modifiers:
        return None
    row, kind, (a, b) = context.row(instruction.operands[0]), TYPES[letter], sources

    def step(c: Cohort) -> None:
        if c.full:
            function(a(c), b(c), out=c.vgpr[row].view(kind))
        else:
            np.copyto(c.vgpr[row].view(kind), function(a(c), b(c)), where=c.exec)

    return step


# ---- sources ----------------------------------------------------------------------------------------------------


def source(instruction: Instruction, number: int, letter: str, context: Context) -> Getter:
    """Source `number` (from 0) as the type, after SDWA, DPP, op_sel and sign modifiers."""
    operand = instruction.operands[number + 1]
    return operand_source(instruction, operand, number, letter, context)


def operand_source(instruction: Instruction, operand: Operand, number: int, letter: str, context: Context) -> Getter:
    """The same for an operand at another position."""
    bits = BITS[letter]
    if instruction.encoding == "sdwa":
        selection = instruction.modifiers.get(f"src{number}_sel", "DWORD")
        return _retyped(selected(word(operand, context, bits), operand, selection), operand, letter)
    if instruction.encoding in ("dpp", "e64_dpp") and number == 0:
        raw = word(operand, context, bits)
        return _retyped(permutation(instruction).apply(raw), operand, letter)
    halves = instruction.numbers("op_sel")
    if bits == 16 and len(halves) > number and halves[number]:
        raw = word(operand, context, 16)
        return _retyped(lambda c: raw(c) >> U32(16), operand, letter)
    return typed(operand, letter, context)


def _retyped(raw: Getter, operand: Operand, letter: str) -> Getter:
    """Words as the type, with sign modifiers."""
    if BITS[letter] == 16:
        return modified(lambda c: raw(c).astype(U16), operand, letter)
    return modified(raw, operand, letter)


# ---- results ----------------------------------------------------------------------------------------------------


def writer(instruction: Instruction, letter: str, context: Context) -> Writer:
    """Writes a result of the type to the destination, after output modifiers."""
    finish = _output_modifiers(instruction, letter)
    row = context.row(instruction.operands[0])
    if BITS[letter] == 64:
        return lambda c, value: put_pair(c, row, finish(value))
    if instruction.encoding == "sdwa":
        return _sdwa_writer(instruction, row, letter, finish)
    if instruction.encoding in ("dpp", "e64_dpp"):
        lanes_written = permutation(instruction).lanes_written
        return lambda c, value: np.copyto(c.vgpr[row], as_word(finish(value), letter), where=lanes_written(c))
    halves = instruction.numbers("op_sel")
    if BITS[letter] == 16 and len(halves) == len(instruction.operands) and halves[-1]:
        return lambda c, value: put_half(c, row, as_word(finish(value), letter), high=True)
    if instruction.name in _KEEP_UPPER_HALF:
        return lambda c, value: put_half(c, row, as_word(finish(value), letter), high=False)
    return lambda c, value: put(c, row, as_word(finish(value), letter))


def put_half(c: Cohort, row: int, half: Array, *, high: bool) -> None:
    """Writes 16 bits, in a uint32, to one half of a register; the other half is unchanged."""
    old = c.vgpr[row]
    put(c, row, (half << U32(16)) | (old & U32(0xFFFF)) if high else half | (old & U32(0xFFFF0000)))


def _output_modifiers(instruction: Instruction, letter: str) -> Callable[[Array], Array]:
    """omod (mul:2, mul:4, div:2) and clamp; clamp on integers is not supported."""
    factor = next((_OUTPUT_FACTORS[item] for item in instruction.modifiers.items() if item in _OUTPUT_FACTORS), None)
    clamp = "clamp" in instruction.modifiers
    if letter not in FLOATS:
        if clamp:
            raise UnsupportedInstruction(f"integer clamp: {instruction.text}")
        return lambda value: value
    if factor is None and not clamp:
        return lambda value: value

    def finish(value: Array) -> Array:
        if factor is not None:
            value = value * value.dtype.type(factor)
        if clamp:
            value = np.where(np.isnan(value), 0, np.clip(value, 0, 1)).astype(value.dtype)
        return value

    return finish


def _sdwa_writer(instruction: Instruction, row: int, letter: str, finish: Callable[[Array], Array]) -> Writer:
    """Writes the result to a part of the word; the rest is zero, sign-extended, or unchanged."""
    offset, width = SELECTIONS[instruction.modifiers.get("dst_sel", "DWORD")]
    unused = instruction.modifiers.get("dst_unused", "UNUSED_PAD")
    mask = ((1 << width) - 1) << offset
    if unused == "UNUSED_SEXT" and width < 32:
        raise UnsupportedInstruction(instruction.text)

    def write(c: Cohort, value: Array) -> None:
        bits = (as_word(finish(value), letter) << U32(offset)) & U32(mask)
        if unused == "UNUSED_PRESERVE":
            bits = bits | (c.vgpr[row] & U32(~mask & 0xFFFFFFFF))
        put(c, row, bits)

    return write
