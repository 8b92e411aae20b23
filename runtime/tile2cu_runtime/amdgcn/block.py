"""Basic blocks: instructions without a jump between them, decoded once and cached."""

from __future__ import annotations

from dataclasses import dataclass

from tile2cu_runtime.amdgcn.cohort import Step
from tile2cu_runtime.amdgcn.disassembly import Listing
from tile2cu_runtime.amdgcn.instruction import Instruction
from tile2cu_runtime.amdgcn.instructions.control import End, build_end, fall_through, is_end
from tile2cu_runtime.amdgcn.instructions.decode import build_step
from tile2cu_runtime.amdgcn.instructions.registers import Context

# Loads return in order, so one may be issued to another's registers: only the registers that they read count.
_LOADS = ("global_load_", "buffer_load_", "flat_load_", "scratch_load_", "ds_read")
# The maximum length of a block, so that decoding a long straight-line kernel does not delay its first fault.
LONGEST = 400


@dataclass(frozen=True)
class Block:
    """`steps` with the registers that each accesses, and how the block ends; `instructions` are all, including the
    end.
    """

    steps: tuple[tuple[int, Step, Instruction], ...]
    end: End
    instructions: tuple[Instruction, ...]


class Program:
    """A kernel's blocks by address, built when first reached."""

    def __init__(self, listing: Listing, context: Context) -> None:
        self._listing = listing
        self._context = context
        self._blocks: dict[int, Block] = {}

    def block(self, address: int) -> Block:
        """The block that begins at an address."""
        found = self._blocks.get(address)
        if found is None:
            found = self._blocks[address] = self._build(address)
        return found

    def _build(self, address: int) -> Block:
        instructions: list[Instruction] = []
        while len(instructions) < LONGEST:
            instruction = self._listing.at(address)
            instructions.append(instruction)
            address = instruction.next_address
            if is_end(instruction):
                return self._block(instructions[:-1], build_end(instruction, self._context), instructions)
            if address in self._listing.leaders:
                break
        return self._block(instructions, fall_through(address), instructions)

    def _block(self, plain: list[Instruction], end: End, instructions: list[Instruction]) -> Block:
        steps = tuple((_awaited(each), build_step(each, self._context), each) for each in plain)
        return Block(steps, end, tuple(instructions))


def _awaited(instruction: Instruction) -> int:
    """The registers that must have arrived before the instruction may be issued."""
    if not instruction.name.startswith(_LOADS):
        return instruction.touches
    bits = 0
    for operand in instruction.operands[0 if "_lds_" in instruction.name else 1 :]:
        bits |= operand.register_bits()
    return bits
