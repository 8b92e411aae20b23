"""Global, flat, scratch and buffer loads and stores, and loads that go straight to LDS.

[MI300 ISA, "Vector Memory Operations", "Flat Memory Instructions"]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I64, LANES, Array, join64
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter, Step, Transfer
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import M0, PRIVATE_APERTURE, SHARED_APERTURE, Instruction, Operand
from tile2cu_runtime.amdgcn.instructions.access import Width, active, data_words, extended, landing, width_of
from tile2cu_runtime.amdgcn.instructions.registers import Context, word

# Bytes of a cache line's half, the unit in which requests are counted: 64. [MI300 ISA, "L1 cache"]
LINE_BYTES = 64
_LDS_OFFSET_BITS = 0x3FFFF


@dataclass(frozen=True)
class Form:
    """The parts of a memory instruction: data register, address and scalar base as the text has them."""

    data: Operand | None
    address: Operand
    base: Operand


def form_of(instruction: Instruction) -> Form:
    """Global, flat and scratch: data first for loads, second for stores."""
    operands = list(instruction.operands)
    data = None
    if "_lds_" not in instruction.name:
        data = operands.pop(1 if "_store_" in instruction.name else 0)
    address = operands.pop(0)
    return Form(data, address, operands.pop(0) if operands else Operand("off"))


def build_global(instruction: Instruction, context: Context) -> Step:
    """global_load, global_store, and global_load_lds."""
    form, width = form_of(instruction), width_of(instruction.name)
    if width is None:
        raise UnsupportedInstruction(instruction.text)
    address = global_address(form, instruction, context)
    return _transfer_step(instruction, form, width, address, context)


def global_address(form: Form, instruction: Instruction, context: Context) -> Getter:
    """The 64-bit addresses: a register pair, or a scalar pair plus a 32-bit register; plus the constant offset."""
    offset = instruction.number("offset")
    if form.base.is_scalar:
        scalar, vector = form.base.index, word(form.address, context)

        def with_base(c: Cohort) -> Array:
            base = join64(c.sgpr[scalar], c.sgpr[scalar + 1]).view(I64) + offset
            total: Array = vector(c).astype(I64) + base
            return total

        return with_base
    row = context.row(form.address)

    def plain(c: Cohort) -> Array:
        total: Array = join64(c.vgpr[row], c.vgpr[row + 1]).view(I64)
        return total + offset if offset else total

    return plain


def _transfer_step(instruction: Instruction, form: Form, width: Width, address: Getter, context: Context) -> Step:
    """A load or store of global memory at the addresses."""

    def place(c: Cohort) -> tuple[Array, Array | None]:
        at, mask = c.batch.global_place(c, instruction, address(c), width.bytes, active(c))
        c.batch.count_lines(at, width.bytes, mask, LINE_BYTES)
        return at, mask

    if "_store_" in instruction.name:
        assert form.data is not None
        row = context.row(form.data)
        return lambda c: store_global(c, instruction, *place(c), data_words(c, row, width), width)
    if form.data is None:
        return lambda c: load_to_lds(c, instruction, *place(c), width)
    land, registers = landing(form.data, width, context), form.data.register_bits()
    return lambda c: load_global(c, instruction, *place(c), width, land, registers)


def store_global(
    c: Cohort, instruction: Instruction, at: Array, mask: Array | None, words: list[Array], width: Width
) -> None:
    """Stores at offsets into the arena, and counts it in vmcnt."""
    if mask is not None:
        at, words = at[mask], [part[mask] for part in words]
    if at.size:
        c.batch.memory.store.store(at, words, width.bytes)
    c.issue(Transfer(instruction=instruction), c.vm)


def load_global(
    c: Cohort, instruction: Instruction, at: Array, mask: Array | None, width: Width,
    land: Callable[[Cohort, Transfer], None], registers: int,
) -> None:  # fmt: skip
    """Loads from offsets into the arena; the words land in the registers when they are waited for."""
    values = extended(c.batch.memory.store.load(at, width.bytes), width)
    transfer = Transfer(instruction=instruction, registers=registers, land=land, values=values, mask=mask)
    c.issue(transfer, c.vm)


def load_to_lds(c: Cohort, instruction: Instruction, at: Array, mask: Array | None, width: Width) -> None:
    """Loads into LDS; it lands when vmcnt is waited for."""
    values = extended(c.batch.memory.store.load(at, width.bytes), width)
    transfer = Transfer(instruction=instruction, values=values, mask=mask)
    _land_in_lds(c, transfer, width, instruction)
    c.issue(transfer, c.vm)


def _land_in_lds(c: Cohort, transfer: Transfer, width: Width, instruction: Instruction) -> None:
    """Makes the transfer write LDS: at M0 plus the constant offset, the wave's lanes one after the other."""
    lane_bytes = max(width.bytes, 4)
    first = (c.sgpr[M0].astype(I64) & _LDS_OFFSET_BITS) + instruction.number("offset")
    transfer.at = first + LANES * lane_bytes

    def land(cohort: Cohort, landed: Transfer) -> None:
        assert landed.at is not None and landed.values is not None
        place = cohort.batch.lds.place(cohort, instruction, landed.at, lane_bytes, landed.mask)
        cohort.batch.lds.write(cohort, place, list(landed.values))

    transfer.land = land


# ---- buffer -----------------------------------------------------------------------------------------------------


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
    """`offset` in the buffer and `inside` by its record count; `address` in memory; `is_scratch`: no buffer at all."""

    offset: Array
    address: Array
    inside: Array
    is_scratch: bool


def buffer_place(
    instruction: Instruction, form: BufferForm, width: int, context: Context
) -> Callable[[Cohort], BufferPlace]:
    """Where each lane's access goes. Lanes beyond the resource's records read 0 and write nothing."""
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
        is_scratch = not base.any() and not records.any()
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
            _land_in_lds(c, transfer, width, instruction)
        c.issue(transfer, c.vm)

    return step


# ---- scratch ----------------------------------------------------------------------------------------------------


def store_scratch(c: Cohort, instruction: Instruction, offset: Array, words: list[Array], width: Width) -> None:
    """Stores to each lane's private bytes."""
    at = c.batch.scratch_place(c, offset)
    mask = active(c)
    if mask is not None:
        at, words = at[mask], [part[mask] for part in words]
    if at.size:
        c.batch.scratch.store(at, words, width.bytes)
    c.issue(Transfer(instruction=instruction), c.vm)


def load_scratch(
    c: Cohort, instruction: Instruction, offset: Array, width: Width,
    land: Callable[[Cohort, Transfer], None], registers: int,
) -> None:  # fmt: skip
    """Loads from each lane's private bytes."""
    values = extended(c.batch.scratch.load(c.batch.scratch_place(c, offset), width.bytes), width)
    c.issue(Transfer(instruction=instruction, registers=registers, land=land, values=values, mask=active(c)), c.vm)


def build_scratch(instruction: Instruction, context: Context) -> Step:
    """scratch_load, scratch_store: an address register, a scalar, and the constant offset, all in bytes."""
    form, width = form_of(instruction), width_of(instruction.name)
    if width is None or form.data is None:
        raise UnsupportedInstruction(instruction.text)
    fixed, row = instruction.number("offset"), context.row(form.data)
    parts = [word(operand, context) for operand in (form.address, form.base) if operand.is_register]
    land, registers, is_store = (
        landing(form.data, width, context),
        form.data.register_bits(),
        "_store_" in instruction.name,
    )

    def step(c: Cohort) -> None:
        offset = np.full((len(c), 64), fixed, I64)
        for part in parts:
            offset += part(c)
        if is_store:
            store_scratch(c, instruction, offset, data_words(c, row, width), width)
        else:
            load_scratch(c, instruction, offset, width, land, registers)

    return step


# ---- flat -------------------------------------------------------------------------------------------------------


def build_flat(instruction: Instruction, context: Context) -> Step:
    """flat_load, flat_store: global memory, LDS or scratch by the address's upper half; counted in both queues."""
    form, width = form_of(instruction), width_of(instruction.name)
    if width is None or form.data is None:
        raise UnsupportedInstruction(instruction.text)
    address, row = global_address(form, instruction, context), context.row(form.data)
    if "_store_" in instruction.name:
        return lambda c: _store_flat(c, instruction, address(c), data_words(c, row, width), width)
    land, registers = landing(form.data, width, context), form.data.register_bits()

    def step(c: Cohort) -> None:
        values = _load_flat(c, instruction, address(c), width)
        transfer = Transfer(instruction=instruction, registers=registers, land=land, values=values, mask=active(c))
        transfer.unordered = True
        c.issue(transfer, c.vm, c.lgkm)

    return step


def _parts(c: Cohort, address: Array) -> tuple[Array, Array, Array]:
    """Active lanes that address LDS, scratch and global memory."""
    upper = address >> I64(32)
    shared, private = c.exec & (upper == SHARED_APERTURE), c.exec & (upper == PRIVATE_APERTURE)
    return shared, private, c.exec & ~shared & ~private


def _load_flat(c: Cohort, instruction: Instruction, address: Array, width: Width) -> Array:
    shared, private, rest = _parts(c, address)
    offset = address & I64(0xFFFFFFFF)
    at, mask = c.batch.global_place(c, instruction, address, width.bytes, rest)
    values = c.batch.memory.store.load(at, width.bytes)
    if shared.any():
        place = c.batch.lds.place(c, instruction, offset, width.bytes, shared)
        values = np.where(shared, c.batch.lds.read(c, place), values)
    if private.any():
        values = np.where(private, c.batch.scratch.load(c.batch.scratch_place(c, offset), width.bytes), values)
    return extended(values, width)


def _store_flat(c: Cohort, instruction: Instruction, address: Array, words: list[Array], width: Width) -> None:
    shared, private, rest = _parts(c, address)
    offset = address & I64(0xFFFFFFFF)
    if shared.any():
        c.batch.lds.write(c, c.batch.lds.place(c, instruction, offset, width.bytes, shared), words)
    if private.any():
        at = c.batch.scratch_place(c, offset)[private]
        c.batch.scratch.store(at, [part[private] for part in words], width.bytes)
    at, mask = c.batch.global_place(c, instruction, address, width.bytes, rest)
    if rest.any():
        assert mask is not None
        c.batch.memory.store.store(at[mask], [part[mask] for part in words], width.bytes)
    c.issue(Transfer(instruction=instruction, unordered=True), c.vm, c.lgkm)
