"""Packed vector instructions: two 16-bit values per word, or two 32-bit values in two registers. [MI300 ISA, "VOP3P"]

op_sel and op_sel_hi select the half of each source for the low and the high result; neg_lo and neg_hi negate it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn.arrays import F16, F32, I16, U16, U32, Array
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter, Step
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.formats import bfloat16_to_float32, float32_to_bfloat16
from tile2cu_runtime.amdgcn.instruction import Instruction
from tile2cu_runtime.amdgcn.instructions.registers import Context, put, word
from tile2cu_runtime.amdgcn.instructions.vector_float import fused

_NAME = re.compile(r"v_pk_(\w+)_(f16|bf16|i16|u16|b16|f32|b32)")
_TYPES: dict[str, Any] = {"f16": F16, "bf16": U16, "i16": I16, "u16": U16, "b16": U16, "f32": F32, "b32": F32}

_INTEGER: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul_lo": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "mad": lambda a, b, c: a * b + c,
    "lshlrev": lambda a, b: b << (a & a.dtype.type(15)),
    "lshrrev": lambda a, b: b >> (a & a.dtype.type(15)),
    "ashrrev": lambda a, b: b >> (a & a.dtype.type(15)),
}
_FLOAT: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.fmax,
    "min": np.fmin,
    "fma": fused,
    "maximum3": lambda a, b, c: np.maximum(np.maximum(a, b), c),
    "minimum3": lambda a, b, c: np.minimum(np.minimum(a, b), c),
}


def build(instruction: Instruction, context: Context) -> Step:
    """v_pk_*."""
    found = _NAME.fullmatch(instruction.name)
    if not found:
        raise UnsupportedInstruction(instruction.text)
    if found[2] in ("f32", "b32"):
        return _wide(instruction, context, found[1])
    table = _FLOAT if found[2] in ("f16", "bf16") else _INTEGER
    if found[1] not in table:
        raise UnsupportedInstruction(instruction.text)
    function = _of_bfloat16(table[found[1]]) if found[2] == "bf16" else table[found[1]]
    return _narrow(instruction, context, function, _TYPES[found[2]])


def _selection(instruction: Instruction, high: bool) -> tuple[list[int], list[int]]:
    """For each source: whether this half of the result reads its upper half, and whether it is negated."""
    count = len(instruction.operands) - 1
    default = [1] * count if high else [0] * count
    chosen = instruction.numbers("op_sel_hi" if high else "op_sel") or default
    return chosen, instruction.numbers("neg_hi" if high else "neg_lo") or [0] * count


def _narrow(instruction: Instruction, context: Context, function: Any, kind: Any) -> Step:
    low, high = _halves(instruction, context, False, kind), _halves(instruction, context, True, kind)
    row, clamp = context.row(instruction.operands[0]), "clamp" in instruction.modifiers
    if clamp and kind is not F16:
        raise UnsupportedInstruction(instruction.text)

    def half(c: Cohort, sources: list[Getter]) -> Array:
        result: Array = function(*[getter(c) for getter in sources])
        if clamp:
            result = np.where(np.isnan(result), F16(0), np.clip(result, F16(0), F16(1)))
        return result.view(U16).astype(U32)

    return lambda c: put(c, row, half(c, low) | (half(c, high) << U32(16)))


def _halves(instruction: Instruction, context: Context, high: bool, kind: Any) -> list[Getter]:
    chosen, negated = _selection(instruction, high)
    return [
        _half(
            word(operand, context, 16), bool(chosen[number]) and operand.is_register,
            bool(negated[number]) and kind is F16, kind,
        )
        for number, operand in enumerate(instruction.operands[1:])
    ]  # fmt: skip


def _half(raw: Getter, upper: bool, negated: bool, kind: Any) -> Getter:
    def half(c: Cohort) -> Array:
        bits = (raw(c) >> U32(16) if upper else raw(c)).astype(U16)
        return (bits ^ U16(0x8000) if negated else bits).view(kind)

    return half


def _of_bfloat16(function: Any) -> Any:
    def rounded(*sources: Array) -> Array:
        return float32_to_bfloat16(function(*map(bfloat16_to_float32, sources))).astype(U16)

    return rounded


# ---- two registers ----------------------------------------------------------------------------------------------


def _wide(instruction: Instruction, context: Context, name: str) -> Step:
    low, high = _words(instruction, context, False), _words(instruction, context, True)
    row = context.row(instruction.operands[0])
    if name == "mov":
        function: Any = None
        low, high = low[:1], high[1:]
    else:
        function = _FLOAT[name]

    def half(c: Cohort, sources: list[Getter]) -> Array:
        values = [getter(c) for getter in sources]
        result: Array = values[0].copy() if function is None else function(*values)
        return result.view(U32)

    def step(c: Cohort) -> None:
        # Both are computed before either is written: the destination may be a source.
        first, second = half(c, low), half(c, high)
        put(c, row, first)
        put(c, row + 1, second)

    return step


def _words(instruction: Instruction, context: Context, high: bool) -> list[Getter]:
    chosen, negated = _selection(instruction, high)
    return [
        _word(instruction, context, number, chosen[number], bool(negated[number]))
        for number in range(len(instruction.operands) - 1)
    ]


def _word(instruction: Instruction, context: Context, number: int, part: int, negated: bool) -> Getter:
    operand = instruction.operands[number + 1]
    raw = word(operand, context)
    if operand.is_vector:
        row = context.row(operand, part)
        raw = lambda c: c.vgpr[row]  # noqa: E731
    elif operand.is_scalar:
        index = operand.index + part
        raw = lambda c: c.sgpr[index]  # noqa: E731
    if negated:
        return lambda c: (raw(c) ^ U32(0x80000000)).view(F32)
    return lambda c: raw(c).view(F32)
