"""MFMA. Accumulates in double precision (integers: 64 bits) and rounds once to the result.

The hardware's intermediate rounding is not published, so float results may differ in the last place. MFMA ignores EXEC.
[MI300 ISA, "Matrix Arithmetic Instructions"]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn.arrays import F16, F32, F64, I8, I32, I64, U8, U16, U32, U64, Array
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter, Step
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.formats import bfloat16_to_float32, float32_to_xf32, fp8_formats, table
from tile2cu_runtime.amdgcn.instruction import Instruction, Operand
from tile2cu_runtime.amdgcn.instructions.mfma_layout import F8F6F4, MfmaShape, parse_shape
from tile2cu_runtime.amdgcn.instructions.registers import Context, constant

_BROADCASTS = ("cbsz", "abid", "blgp")
_RESULTS: dict[str, Any] = {"f32": F32, "i32": I32, "f64": F64}


def build(instruction: Instruction, context: Context) -> Step:
    """v_mfma_*."""
    first = instruction.operands[1]
    shape = parse_shape(instruction.name, first.count)
    if shape is None or shape.a == F8F6F4 or any(name in instruction.modifiers for name in _BROADCASTS):
        raise UnsupportedInstruction(instruction.text)
    a = _rows(first, shape, shape.a, context)
    b = _rows(instruction.operands[2], shape, shape.b, context)
    return product_step(instruction, shape, a, b, context)


def product_step(instruction: Instruction, shape: MfmaShape, a: Getter, b: Getter, context: Context) -> Step:
    """Computes D = A B + C; `a` returns (waves, blocks, m, k) and `b` (waves, blocks, n, k) in the accumulation
    type.
    """
    accumulator = accumulator_reader(instruction.operands[3], shape, context)
    store = _result_writer(instruction.operands[0], shape, context)
    to_registers = register_order(shape)

    def step(c: Cohort) -> None:
        product = np.matmul(a(c), b(c).swapaxes(-1, -2))
        store(c, to_registers(product), accumulator(c))

    return step


# ---- A and B ----------------------------------------------------------------------------------------------------


def decoder(element: str, target: str) -> Callable[[Array], Array]:
    """Converts 32-bit words, (waves, 64, registers), to their elements as float64 (integers: int64)."""
    if element in ("fp8", "bf8"):
        values = table(fp8_formats(target)[element]).astype(F64)
        return lambda words: values.take(words.view(U8))
    return _DECODERS[element]


_DECODERS: dict[str, Callable[[Array], Array]] = {
    "f16": lambda words: words.view(F16).astype(F64),
    "bf16": lambda words: bfloat16_to_float32(words.view(U16)).astype(F64),
    "f32": lambda words: words.view(F32).astype(F64),
    "xf32": lambda words: float32_to_xf32(words).astype(F64),
    "f64": lambda words: words.view(F64),
    "i8": lambda words: words.view(I8).astype(I64),
}


def words_of(operand: Operand, context: Context) -> Getter:
    """The operand's registers, (waves, 64, registers)."""
    rows = context.rows(operand)
    return lambda c: np.ascontiguousarray(c.vgpr[rows].transpose(1, 2, 0))


def _rows(operand: Operand, shape: MfmaShape, element: str, context: Context) -> Getter:
    """A as (waves, blocks, m, k), or B transposed: lane = (k group, block, row), consecutive k in a lane."""
    words, decode = words_of(operand, context), decoder(element, context.target)
    split, joined = (
        (-1, shape.k_groups, shape.blocks, shape.m, shape.operand_elements),
        (-1, shape.blocks, shape.m, shape.k),
    )

    def rows(c: Cohort) -> Array:
        elements = decode(words(c)).reshape(split)
        if shape.k_groups == 1:
            return elements[:, 0]
        together: Array = elements.transpose(0, 2, 3, 1, 4).reshape(joined)
        return together

    return rows


# ---- C and D ----------------------------------------------------------------------------------------------------


def register_order(shape: MfmaShape) -> Callable[[Array], Array]:
    """Transposes (waves, blocks, m, n) to (registers, waves, lanes), both split into the factors of the layout."""
    layout = shape.result_layout
    letters = "nb" + "".join(letter for letter, _ in layout.rows) + "c"
    order = [letters.index(letter) for letter in layout.registers + "n" + layout.lanes]
    split = (shape.blocks, *(size for _, size in layout.rows), shape.n)
    return lambda product: product.reshape(-1, *split).transpose(order)


def _splitter(shape: MfmaShape) -> Callable[[Array], Array]:
    """Splits (registers, waves, lanes) into the factors of register_order; a view."""
    layout = shape.result_layout
    sizes = {"b": shape.blocks, "c": shape.n, **dict(layout.rows)}
    registers, lanes = ([sizes[letter] for letter in letters] for letters in (layout.registers, layout.lanes))
    return lambda rows: rows.reshape(*registers, -1, *lanes)


def accumulator_reader(operand: Operand, shape: MfmaShape, context: Context) -> Getter:
    """Reads C in the order of register_order."""
    kind = _RESULTS[shape.result]
    if not operand.is_vector:
        bits = 64 if shape.result == "f64" else 32
        value = constant(operand.constant(bits), U64 if bits == 64 else U32).view(kind)[0, 0]
        return lambda c: value
    rows, split = context.rows(operand), _splitter(shape)
    if shape.result == "f64":
        return lambda c: split(_joined_doubles(c.vgpr[rows]))
    return lambda c: split(c.vgpr[rows].view(kind))


def _joined_doubles(words: Array) -> Array:
    """Converts pairs of rows, (2 n, waves, 64), to float64 (n, waves, 64)."""
    result: Array = (words[0::2].astype(U64) | (words[1::2].astype(U64) << U64(32))).view(F64)
    return result


def _result_writer(operand: Operand, shape: MfmaShape, context: Context) -> Callable[[Cohort, Array, Array], None]:
    rows, kind, split = context.rows(operand), _RESULTS[shape.result], _splitter(shape)

    def store_doubles(c: Cohort, product: Array, added: Array) -> None:
        bits = np.ascontiguousarray(product + added).reshape(-1, len(c), 64).view(U64)
        words = c.vgpr[rows]
        words[0::2], words[1::2] = bits.astype(U32), (bits >> U64(32)).astype(U32)

    def store(c: Cohort, product: Array, added: Array) -> None:
        np.add(product, added, out=split(c.vgpr[rows].view(kind)), casting="unsafe", dtype=product.dtype)

    return store_doubles if shape.result == "f64" else store
