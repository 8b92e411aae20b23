"""Atomics on global memory and LDS, executed in the order of waves and lanes.

[MI300 ISA, "Memory Atomic Operations"]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn.arrays import F16, F32, F64, I32, I64, U16, U32, U64, Array, join64
from tile2cu_runtime.amdgcn.byte_store import ByteStore, is_aligned
from tile2cu_runtime.amdgcn.cohort import Cohort, Step, Transfer
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.formats import bfloat16_to_float32, float32_to_bfloat16
from tile2cu_runtime.amdgcn.instruction import Instruction, Operand
from tile2cu_runtime.amdgcn.instructions.access import Width, active, data_words, landing
from tile2cu_runtime.amdgcn.instructions.buffer import BufferForm, buffer_place
from tile2cu_runtime.amdgcn.instructions.lds_access import lds_address
from tile2cu_runtime.amdgcn.instructions.registers import Context
from tile2cu_runtime.amdgcn.instructions.vector_memory import Form, global_address

Combine = Callable[[Any, Any], Any]


def _add_bfloat16(a: Array, b: Array) -> Array:
    return float32_to_bfloat16(bfloat16_to_float32(a) + bfloat16_to_float32(b)).astype(U16)


@dataclass(frozen=True)
class AtomicOperation:
    """`combine` of the old value and the operand, both arrays of `kind` over the bytes of one lane."""

    kind: Any
    combine: Combine
    bytes: int = 4
    compares: bool = False


def _swap(_: Array, new: Array) -> Array:
    return new


def _integer(bits: int) -> dict[str, AtomicOperation]:
    unsigned, signed, size = (U32, I32, 4) if bits == 32 else (U64, I64, 8)
    return {
        "add": AtomicOperation(unsigned, np.add, size),
        "sub": AtomicOperation(unsigned, np.subtract, size),
        "and": AtomicOperation(unsigned, np.bitwise_and, size),
        "or": AtomicOperation(unsigned, np.bitwise_or, size),
        "xor": AtomicOperation(unsigned, np.bitwise_xor, size),
        "umax": AtomicOperation(unsigned, np.maximum, size),
        "umin": AtomicOperation(unsigned, np.minimum, size),
        "smax": AtomicOperation(signed, np.maximum, size),
        "smin": AtomicOperation(signed, np.minimum, size),
        "swap": AtomicOperation(unsigned, _swap, size),
        "cmpswap": AtomicOperation(unsigned, _swap, size, compares=True),
    }


OPERATIONS: dict[str, AtomicOperation] = {
    **_integer(32),
    **{f"{name}_x2": operation for name, operation in _integer(64).items()},
    "add_f32": AtomicOperation(F32, np.add),
    "add_f64": AtomicOperation(F64, np.add, 8),
    "max_f64": AtomicOperation(F64, np.fmax, 8),
    "min_f64": AtomicOperation(F64, np.fmin, 8),
    "pk_add_f16": AtomicOperation(F16, np.add),
    "pk_add_bf16": AtomicOperation(U16, _add_bfloat16),
}
# DS atomics have their type in the name: ds_add_rtn_u32.
_LDS_NAMES = {
    "add_u32": "add", "sub_u32": "sub", "and_b32": "and", "or_b32": "or", "xor_b32": "xor", "max_u32": "umax",
    "min_u32": "umin", "max_i32": "smax", "min_i32": "smin", "wrxchg_b32": "swap", "cmpst_b32": "cmpswap",
    "add_u64": "add_x2", "add_f32": "add_f32", "add_f64": "add_f64", "pk_add_f16": "pk_add_f16",
    "pk_add_bf16": "pk_add_bf16",
}  # fmt: skip
_GLOBAL = re.compile(r"(?:global|flat|buffer)_atomic_(\w+)")
_LDS = re.compile(r"ds_(\w+)")


def run(store: ByteStore, operation: AtomicOperation, at: Array, words: list[Array], mask: Array | None) -> Array:
    """Performs the operation at byte offsets, (waves, 64); returns the old words, (words, waves, 64).

    For compare-and-swap the words are the new value and then the compared one.
    """
    size = operation.bytes // 4
    old: Array = np.zeros((size, *at.shape), U32)
    for wave, lane in zip(*np.nonzero(np.ones(at.shape, bool) if mask is None else mask), strict=True):
        place = slice(int(at[wave, lane]), int(at[wave, lane]) + operation.bytes)
        before = store.bytes[place].copy()
        operand = np.array([part[wave, lane] for part in words], U32)
        old[:, wave, lane] = before.view(U32)
        if operation.compares and not np.array_equal(before.view(U32), operand[size:]):
            continue
        new = operation.combine(before.view(operation.kind), operand[:size].view(operation.kind))
        store.bytes[place] = np.atleast_1d(new).view(np.uint8)
    return old


def run_blindly(
    store: ByteStore, operation: AtomicOperation, at: Array, words: list[Array], mask: Array | None
) -> bool:
    """The same without old values, by NumPy's unbuffered functions; False if that is not possible."""
    function, size = operation.combine, operation.bytes
    if not isinstance(function, np.ufunc) or np.dtype(operation.kind).itemsize != size or not is_aligned(at, size):
        return False
    chosen = slice(None) if mask is None else mask
    values = words[0][chosen] if size == 4 else join64(words[0][chosen], words[1][chosen])
    function.at(store.bytes.view(operation.kind), at[chosen] // size, values.view(operation.kind))
    return True


def build_global(instruction: Instruction, context: Context) -> Step:
    """global_atomic_*, flat_atomic_* (on global memory), buffer_atomic_*."""
    operation = _operation(_GLOBAL, instruction)
    operands = list(instruction.operands)
    returns = "sc0" in instruction.modifiers or "glc" in instruction.modifiers
    if instruction.name.startswith("buffer_"):
        form = BufferForm.of(instruction)
        place = buffer_place(instruction, form, operation.bytes, context)
        result = data = operands[0]
    else:
        place = None
        result = operands.pop(0) if returns else operands[1]
        data = operands[1]
        base = operands[2] if len(operands) > 2 else Operand("off")
        address = global_address(Form(data, operands[0], base), instruction, context)
    width = Width(operation.bytes * (2 if operation.compares else 1))
    row, land = context.row(data), landing(result, Width(operation.bytes), context)
    registers = result.register_bits() if returns else 0

    def step(c: Cohort) -> None:
        if place is None:
            where, wanted = address(c), active(c)
        else:
            found = place(c)
            where, wanted = found.address, c.exec & found.inside
        at, mask = c.batch.global_place(c, instruction, where, operation.bytes, wanted)
        store, words = c.batch.memory.store, data_words(c, row, width)
        transfer = Transfer(instruction=instruction, registers=registers, mask=mask)
        if returns or not run_blindly(store, operation, at, words, mask):
            transfer.values = run(store, operation, at, words, mask)
        transfer.land = land if returns else None
        c.issue(transfer, c.vm)

    return step


def build_lds(instruction: Instruction, context: Context) -> Step:
    """ds_add_u32 and similar, with and without `_rtn`. For the race check an atomic is a read."""
    found = _LDS.fullmatch(instruction.name)
    returns = "_rtn" in instruction.name
    name = _LDS_NAMES.get(found[1].replace("_rtn", "") if found else "")
    if name is None:
        raise UnsupportedInstruction(instruction.text)
    operation, first = OPERATIONS[name], int(returns)
    address, offset = lds_address(instruction, context, first), instruction.number("offset")
    # ds_cmpst has the compared value before the new one.
    data = instruction.operands[first + 1 :][::-1] if operation.compares else instruction.operands[first + 1 :]
    rows = [context.row(operand, number) for operand in data for number in range(operation.bytes // 4)]
    land = landing(instruction.operands[0], Width(operation.bytes), context)
    registers = instruction.operands[0].register_bits() if returns else 0

    def step(c: Cohort) -> None:
        lds = c.batch.lds
        access = lds.place(c, instruction, address(c, offset), operation.bytes, active(c))
        lds.read(c, access)
        assert access.at is not None
        words = [c.vgpr[row] for row in rows]
        if returns or not run_blindly(lds.store, operation, access.at, words, access.mask):
            access.values = run(lds.store, operation, access.at, words, access.mask)
        access.land, access.registers = (land if returns else None), registers
        c.issue(access, c.lgkm)

    return step


def _operation(pattern: re.Pattern[str], instruction: Instruction) -> AtomicOperation:
    found = pattern.fullmatch(instruction.name)
    if not found or found[1] not in OPERATIONS:
        raise UnsupportedInstruction(instruction.text)
    return OPERATIONS[found[1]]
