"""Multiply-adds outside the tables: accumulating forms, literal constants, mixed precision, dot products.

[MI300 ISA, "VOP2: V_FMAC_F32, V_FMAMK_F32", "VOP3P: V_FMA_MIX_F32, V_DOT2_F32_F16"]
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn.arrays import F16, F32, F64, I16, I32, I64, U16, U32, Array
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter, Step
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import Instruction, Operand
from tile2cu_runtime.amdgcn.instructions.registers import Context, across_lanes, modified, put, typed, word
from tile2cu_runtime.amdgcn.instructions.vector import put_half, source, writer
from tile2cu_runtime.amdgcn.instructions.vector_float import fused

_ACCUMULATE = re.compile(r"v_(?:fmac|mac)_f(16|32|64)")
_DOT = re.compile(r"v_dot(2|4|8)(c?)_(f32_f16|f32_bf16|i32_i8|u32_u8|i32_i16)")
_DOT_TYPES: dict[str, tuple[type[Any], type[Any]]] = {
    "f32_f16": (F16, F32), "i32_i8": (np.int8, I32), "u32_u8": (np.uint8, U32), "i32_i16": (I16, I32),
}  # fmt: skip


def accumulating(instruction: Instruction, context: Context) -> Step:
    """v_fmac: the destination is the third source."""
    found = _ACCUMULATE.fullmatch(instruction.name)
    if not found:
        raise UnsupportedInstruction(instruction.text)
    letter = {"16": "h", "32": "f", "64": "d"}[found[1]]
    a, b = (source(instruction, number, letter, context) for number in (0, 1))
    old, write = typed(instruction.operands[0], letter, context), writer(instruction, letter, context)
    return lambda c: write(c, fused(a(c), b(c), old(c)))


def with_constant(instruction: Instruction, context: Context) -> Step:
    """v_fmamk_f32 (a * k + b), v_fmaak_f32 (a * b + k): a fused multiply-add in operand order."""
    a, b, d = (typed(operand, "f", context) for operand in instruction.operands[1:])
    write = writer(instruction, "f", context)
    return lambda c: write(c, fused(a(c), b(c), d(c)))


def mixed(instruction: Instruction, context: Context) -> Step:
    """v_fma_mix_f32, v_fma_mixlo_f16, v_fma_mixhi_f16: each source is a float32 or one half of a word."""
    halves, is_half = instruction.numbers("op_sel") or [0] * 3, instruction.numbers("op_sel_hi") or [0] * 3
    sources = [
        _mixed_source(operand, bool(is_half[number]), bool(halves[number]), context)
        for number, operand in enumerate(instruction.operands[1:])
    ]
    row, name = context.row(instruction.operands[0]), instruction.name
    write = writer(instruction, "f", context)

    def step(c: Cohort) -> None:
        a, b, d = (getter(c) for getter in sources)
        total = a.astype(F64) * b + d
        if name == "v_fma_mix_f32":
            write(c, total.astype(F32))
        else:
            half = total.astype(F32).astype(F16).view(U16).astype(U32)
            put_half(c, row, half, high=name == "v_fma_mixhi_f16")

    return step


def _mixed_source(operand: Operand, is_half: bool, high: bool, context: Context) -> Getter:
    if not is_half:
        return typed(operand, "f", context)
    raw = word(operand, context, 16)
    return modified(lambda c: (raw(c) >> U32(16 if high else 0)).astype(U16), operand, "h")


def dot_product(instruction: Instruction, context: Context) -> Step:
    """v_dot2, v_dot4 and their accumulating forms, in double precision or 64-bit integers, rounded once."""
    found = _DOT.fullmatch(instruction.name)
    if not found or found[3] not in _DOT_TYPES:
        raise UnsupportedInstruction(instruction.text)
    element, result = _DOT_TYPES[found[3]]
    a, b = (word(operand, context) for operand in instruction.operands[1:3])
    added = word(instruction.operands[0] if found[2] else instruction.operands[3], context)
    wide, row = F64 if result is F32 else I64, context.row(instruction.operands[0])

    def parts(c: Cohort, getter: Getter) -> Array:
        words = np.ascontiguousarray(across_lanes(c, getter(c)))
        result: Array = words.view(element).reshape(len(c), 64, -1).astype(wide)
        return result

    def step(c: Cohort) -> None:
        total = (parts(c, a) * parts(c, b)).sum(axis=-1) + added(c).view(result)
        put(c, row, total.astype(result).view(U32))

    return step
