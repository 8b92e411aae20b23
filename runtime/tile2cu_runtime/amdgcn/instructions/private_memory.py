"""Scratch and flat loads and stores: private memory, and addresses in any aperture.

[MI300 ISA, "Flat Memory Instructions"]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I64, Array
from tile2cu_runtime.amdgcn.cohort import Cohort, Step, Transfer
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import PRIVATE_APERTURE, SHARED_APERTURE, Instruction
from tile2cu_runtime.amdgcn.instructions.access import Width, active, data_words, extended, landing, width_of
from tile2cu_runtime.amdgcn.instructions.registers import Context, word
from tile2cu_runtime.amdgcn.instructions.vector_memory import form_of, global_address


def store_scratch(c: Cohort, instruction: Instruction, offset: Array, words: list[Array], width: Width) -> None:
    """Stores to each lane's private memory."""
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
    """Loads from each lane's private memory."""
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
    """flat_load, flat_store: global memory, LDS or scratch by the address's upper half; counted by both counters."""
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
