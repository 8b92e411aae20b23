"""MFMA of 8-, 6- and 4-bit floats with a scale per 32 elements of k (gfx950).

v_mfma_f32_{16x16x128,32x32x64}_f8f6f4 and its scaled form. cbsz is the type of A, blgp that of B.
Source: AMD Instinct CDNA4 ISA, "Matrix Arithmetic Instructions", block scaling; OCP Microscaling Formats for the types.
"""

from __future__ import annotations

import numpy as np

from tile2cu_runtime.amdgcn.arrays import F64, U32, Array
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter, Step
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.formats import BF6, BF8_OCP, FP4, FP6, FP8_OCP, SmallFloat, table, unpack_codes
from tile2cu_runtime.amdgcn.instruction import Instruction, Operand
from tile2cu_runtime.amdgcn.instructions.mfma import product_step, words_of
from tile2cu_runtime.amdgcn.instructions.mfma_layout import F8F6F4, MfmaShape, parse_shape
from tile2cu_runtime.amdgcn.instructions.registers import Context, across_lanes, word

FORMATS = (FP8_OCP, BF8_OCP, FP6, BF6, FP4)
# Elements per scale, and elements per lane.
SCALE_BLOCK = 32
LANE_ELEMENTS = 32
# A scale is a biased exponent (E8M0); this one is 1, and 255 is NaN.
SCALE_ONE, SCALE_NAN = 127, 255


def build(instruction: Instruction, context: Context) -> Step:
    """The step. Operands: D, A, B, C, and for the scaled form the registers with the scales of A and B."""
    shape = parse_shape(instruction.name, instruction.operands[1].count)
    if shape is None or shape.a != F8F6F4:
        raise UnsupportedInstruction(instruction.text)
    scales: tuple[Getter | None, Getter | None] = (None, None)
    if shape.scaled:
        scales = (_scales(instruction, 0, shape, context), _scales(instruction, 1, shape, context))
    a = _rows(instruction.operands[1], FORMATS[instruction.number("cbsz")], shape, scales[0], context)
    b = _rows(instruction.operands[2], FORMATS[instruction.number("blgp")], shape, scales[1], context)
    return product_step(instruction, shape, a, b, context)


def _rows(operand: Operand, form: SmallFloat, shape: MfmaShape, scales: Getter | None, context: Context) -> Getter:
    """A as (waves, 1, m, k), or B transposed, multiplied by its scales."""
    words, values = words_of(operand, context), table(form).astype(F64)
    # 8-bit elements are in two runs of 16 per lane, one in each half of k; others in one run of 32.
    runs = 2 if form.bits == 8 else 1
    split = (-1, shape.k_groups, shape.m, runs, LANE_ELEMENTS // runs)

    def rows(c: Cohort) -> Array:
        codes = unpack_codes(words(c), form.bits, LANE_ELEMENTS)
        elements: Array = values.take(codes).reshape(split).transpose(0, 2, 3, 1, 4).reshape(-1, 1, shape.m, shape.k)
        if scales is not None:
            elements = elements * np.repeat(scales(c), SCALE_BLOCK, axis=-1)[:, None]
        return elements

    return rows


def _scales(instruction: Instruction, source: int, shape: MfmaShape, context: Context) -> Getter:
    """The scales of A (0) or B (1) as (waves, m, k / 32).

    Lane = block of k times m plus row; op_sel and op_sel_hi are the low and high bit of the byte index.
    """
    raw = word(instruction.operands[4 + source], context)
    low, high = (instruction.numbers(name) or [0, 0] for name in ("op_sel", "op_sel_hi"))
    shift = U32(8 * (low[source] + 2 * high[source]))

    def scales(c: Cohort) -> Array:
        exponents = ((across_lanes(c, raw(c)) >> shift) & U32(0xFF)).astype(np.int32)
        factors = np.where(exponents == SCALE_NAN, np.nan, np.ldexp(1.0, exponents - SCALE_ONE))
        by_row: Array = factors.reshape(len(c), -1, shape.m).transpose(0, 2, 1)
        return by_row

    return scales
