"""Buffer loads and stores (MUBUF), also directly to LDS. [MI300 ISA, "Buffer Addressing"]"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I64, Array, join64
from tile2cu_runtime.amdgcn.cohort import Cohort, Step, Transfer
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import Instruction, Operand
from tile2cu_runtime.amdgcn.instructions.access import Width, active, data_words, extended, landing, width_of
from tile2cu_runtime.amdgcn.instructions.private_memory import load_scratch, store_scratch
from tile2cu_runtime.amdgcn.instructions.registers import Context, word
from tile2cu_runtime.amdgcn.instructions.vector_memory import LINE_BYTES, land_in_lds, store_global


@dataclass(frozen=True)
class BufferForm:
    """The parts of a MUBUF instruction. [MI300 ISA, "Buffer Addressing"]"""

    data: Operand | None
    address: Operand
    resource: Operand
    offset: Operand

    @staticmethod
    def of(instruction: Instruction) -> BufferForm:
        operands = list(instruction.operands)
        to_lds = "lds" in instruction.modifiers or instruction.name.endswith("_lds")
        data = None if to_lds else operands.pop(0)
        if len(operands) == 2:
            operands.insert(0, Operand("off"))
        return BufferForm(data, *operands)


@dataclass(frozen=True)
class BufferPlace:
    """`offset` in the buffer and `inside` by its record count; `address` in memory; `is_scratch`: a scratch access."""

    offset: Array
    address: Array
    inside: Array
    is_scratch: bool


def buffer_place(
    instruction: Instruction, form: BufferForm, width: int, context: Context
) -> Callable[[Cohort], BufferPlace]:
    """The addresses of each lane's access. Lanes beyond the resource's records read 0 and write nothing."""
    resource, fixed = form.resource.index, instruction.number("offset")
    scalar = word(form.offset, context)
    by_offset, by_index = "offen" in instruction.modifiers, "idxen" in instruction.modifiers
    row = context.row(form.address) if form.address.is_vector else 0

    def place(c: Cohort) -> BufferPlace:
        low, high, records = (c.sgpr[resource + number] for number in range(3))
        base = join64(low, high & low.dtype.type(0xFFFF)).view(I64)
        stride = ((high >> low.dtype.type(16)) & low.dtype.type(0x3FFF)).astype(I64)
        offset = np.full((len(c), 64), fixed, I64)
        if by_offset:
            offset += c.vgpr[row + by_index]
        inside = offset + width <= records
        if by_index:
            offset += c.vgpr[row] * stride
            inside = np.where(stride > 0, c.vgpr[row] < records, offset + width <= records)
        is_scratch = c.batch.has_scratch and not base.any() and not records.any()
        return BufferPlace(offset + scalar(c).astype(I64), base + offset + scalar(c).astype(I64), inside, is_scratch)

    return place


def build_buffer(instruction: Instruction, context: Context) -> Step:
    """buffer_load, buffer_store, and buffer_load to LDS."""
    form, width = BufferForm.of(instruction), width_of(instruction.name)
    if width is None:
        raise UnsupportedInstruction(instruction.text)
    place = buffer_place(instruction, form, width.bytes, context)
    if "_store_" in instruction.name:
        return _buffer_store(instruction, form, width, place, context)
    return _buffer_load(instruction, form, width, place, context)


def _buffer_store(
    instruction: Instruction, form: BufferForm, width: Width, place: Callable[[Cohort], BufferPlace], context: Context
) -> Step:
    assert form.data is not None
    row = context.row(form.data)

    def step(c: Cohort) -> None:
        where = place(c)
        words = data_words(c, row, width)
        if where.is_scratch:
            store_scratch(c, instruction, where.offset, words, width)
            return
        at, mask = c.batch.global_place(c, instruction, where.address, width.bytes, c.exec & where.inside)
        c.batch.count_lines(at, width.bytes, mask, LINE_BYTES)
        store_global(c, instruction, at, mask, words, width)

    return step


def _buffer_load(
    instruction: Instruction, form: BufferForm, width: Width, place: Callable[[Cohort], BufferPlace], context: Context
) -> Step:
    land = landing(form.data, width, context) if form.data else None
    registers = form.data.register_bits() if form.data else 0

    def step(c: Cohort) -> None:
        where = place(c)
        if where.is_scratch and land:
            load_scratch(c, instruction, where.offset, width, land, registers)
            return
        at, mask = c.batch.global_place(c, instruction, where.address, width.bytes, c.exec & where.inside)
        c.batch.count_lines(at, width.bytes, mask, LINE_BYTES)
        values = np.where(where.inside, extended(c.batch.memory.store.load(at, width.bytes), width), np.uint32(0))
        transfer = Transfer(instruction=instruction, registers=registers, land=land, values=values, mask=active(c))
        if land is None:
            land_in_lds(c, transfer, width, instruction)
        c.issue(transfer, c.vm)

    return step
