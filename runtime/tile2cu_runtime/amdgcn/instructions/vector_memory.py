"""Global loads and stores, and loads directly to LDS.

[MI300 ISA, "Vector Memory Operations", "Flat Memory Instructions"]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tile2cu_runtime.amdgcn.arrays import I64, LANES, Array, join64
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter, Step, Transfer
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import M0, Instruction, Operand
from tile2cu_runtime.amdgcn.instructions.access import Width, active, data_words, extended, landing, width_of
from tile2cu_runtime.amdgcn.instructions.registers import Context, word

# The unit in which requests are counted, half a cache line: 64 bytes. [MI300 ISA, "L1 cache"]
LINE_BYTES = 64
_LDS_OFFSET_BITS = 0x3FFFF


@dataclass(frozen=True)
class Form:
    """The parts of a memory instruction: data register, address and scalar base as in the disassembly."""

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
    """Stores at offsets into the arena, counted by vmcnt."""
    if mask is not None:
        at, words = at[mask], [part[mask] for part in words]
    if at.size:
        c.batch.memory.store.store(at, words, width.bytes)
    c.issue(Transfer(instruction=instruction), c.vm)


def load_global(
    c: Cohort, instruction: Instruction, at: Array, mask: Array | None, width: Width,
    land: Callable[[Cohort, Transfer], None], registers: int,
) -> None:  # fmt: skip
    """Loads from offsets into the arena; registers are written when vmcnt is waited for."""
    values = extended(c.batch.memory.store.load(at, width.bytes), width)
    transfer = Transfer(instruction=instruction, registers=registers, land=land, values=values, mask=mask)
    c.issue(transfer, c.vm)


def load_to_lds(c: Cohort, instruction: Instruction, at: Array, mask: Array | None, width: Width) -> None:
    """Loads into LDS, written when vmcnt is waited for."""
    values = extended(c.batch.memory.store.load(at, width.bytes), width)
    transfer = Transfer(instruction=instruction, values=values, mask=mask)
    land_in_lds(c, transfer, width, instruction)
    c.issue(transfer, c.vm)


def land_in_lds(c: Cohort, transfer: Transfer, width: Width, instruction: Instruction) -> None:
    """Makes the transfer write LDS: at M0 plus the constant offset, in lane order."""
    lane_bytes = max(width.bytes, 4)
    first = (c.sgpr[M0].astype(I64) & _LDS_OFFSET_BITS) + instruction.number("offset")
    transfer.at = first + LANES * lane_bytes

    def land(cohort: Cohort, landed: Transfer) -> None:
        assert landed.at is not None and landed.values is not None
        place = cohort.batch.lds.place(cohort, instruction, landed.at, lane_bytes, landed.mask)
        cohort.batch.lds.write(cohort, place, list(landed.values))

    transfer.land = land
