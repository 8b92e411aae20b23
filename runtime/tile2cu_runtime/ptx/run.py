"""Runs a kernel of a PTX module on NumPy arrays.

All threads of some blocks go side by side. Those that are furthest behind in the text run first, so that threads which
a branch parted meet again where its ways join; a barrier waits for all threads of the block that have not ended.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tile2cu_runtime.amdgcn.arguments import Arguments, ArgumentValue, extent_of
from tile2cu_runtime.amdgcn.global_memory import GlobalMemory
from tile2cu_runtime.ptx import memory, warp
from tile2cu_runtime.ptx.arithmetic import build_arithmetic
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.operands import source
from tile2cu_runtime.ptx.parse import Instruction, Kernel, parse
from tile2cu_runtime.ptx.state import WARP, Step, Threads

THREADS_AT_ONCE = 1024
STEP_LIMIT = 50_000_000


@dataclass(frozen=True)
class _Block:
    """Steps without a jump between them, and what ends them: an instruction, or none where a label follows."""

    steps: tuple[tuple[Instruction, Step], ...]
    end: Instruction | None
    next: int


class Module:
    """A PTX text whose kernels can be launched; what was decoded once is kept."""

    def __init__(self, text: str) -> None:
        self.kernels = parse(text)
        self._programs: dict[str, _Program] = {}

    @staticmethod
    def load(path: Path) -> Module:
        return Module(path.read_text())

    def find(self, *parts: str) -> str:
        """The one kernel whose symbol has these parts. PtxError when none or several have them."""
        found = [name for name in self.kernels if all(part in name for part in parts)]
        if len(found) != 1:
            raise PtxError(f"{len(found)} kernels have {parts} in their names: {list(self.kernels)}")
        return found[0]

    def launch(
        self,
        kernel: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[ArgumentValue],
        *,
        shared_bytes: int = 0,
        limit: int = STEP_LIMIT,
        names: Sequence[str] = (),
    ) -> int:
        """Runs a kernel; arrays are global buffers and hold the result afterwards. Gives the instructions executed.

        Shapes: `grid` in blocks, `block` in threads, up to three extents each; `shared_bytes` of dynamic memory.
        Errors: PtxError for a fault of the kernel (out of bounds, misaligned, a warp that is not whole where it must
        be), and for what the machine does not have; SimulatorError for arguments that do not fit the kernel.
        """
        chosen = self.kernels[kernel]
        program = self._programs.setdefault(kernel, _Program(chosen))
        called = Arguments(arguments, names)
        store = GlobalMemory(called.contents)
        addresses = called.place(store.buffers)
        counts, threads = extent_of(grid), extent_of(block)
        ids = [(x, y, z) for z, y, x in itertools.product(*map(range, reversed(counts)))]
        a_block = threads[0] * threads[1] * threads[2]
        if a_block % WARP:
            raise PtxError(f"blocks of {a_block} threads are no whole warps")
        executed, at_once = 0, max(1, THREADS_AT_ONCE // a_block)
        with np.errstate(all="ignore"):
            for first in range(0, len(ids), at_once):
                state = Threads(
                    kernel=chosen,
                    blocks=ids[first : first + at_once],
                    grid=counts,
                    block=threads,
                    parameters=_parameter_bytes(chosen, called, addresses),
                    memory=store,
                    shared_bytes=chosen.shared_bytes + shared_bytes,
                )
                executed += program.run(state, limit - executed)
        called.write_back(store)
        return executed


def _parameter_bytes(kernel: Kernel, arguments: Arguments, addresses: dict[int, int]) -> bytes:
    if len(arguments.values) != len(kernel.parameters):
        raise PtxError(f"{kernel.name} takes {len(kernel.parameters)} arguments, not {len(arguments.values)}")
    raw = bytearray(sum(each.bytes for each in kernel.parameters) + 64)
    for number, parameter in enumerate(kernel.parameters):
        content = arguments.bytes_of(number, parameter.bytes, addresses, kernel.name)
        raw[parameter.offset : parameter.offset + parameter.bytes] = content
    return bytes(raw)


class _Program:
    """A kernel's blocks of instructions by their first one, decoded when they are first reached."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._leaders = frozenset(kernel.labels.values())
        self._blocks: dict[int, _Block] = {}

    def run(self, t: Threads, limit: int) -> int:
        """Runs all threads to their end; gives how many instructions were executed, each once for all its threads."""
        executed = 0
        while not t.exited.all():
            ready = ~(t.exited | t.waiting)
            if not ready.any():
                self._release(t)
                continue
            at = int(t.pc[ready].min())
            block = self._block(at)
            t.mask = ready & (t.pc == at)
            t.full = bool(t.mask.all())
            for _, step in block.steps:
                step(t)
            self._end(t, block)
            executed += len(block.steps) + 1
            if executed > limit:
                raise PtxError(f"{self._kernel.name} has executed more than {limit} instructions")
        return executed

    def _release(self, t: Threads) -> None:
        """Lets the blocks go on all of whose threads wait at the barrier or have ended."""
        pending = (t.waiting | t.exited).reshape(-1, t.a_block).all(axis=1)
        t.waiting &= ~np.repeat(pending, t.a_block)

    def _end(self, t: Threads, block: _Block) -> None:
        t.pc[t.mask] = block.next
        end = block.end
        if end is None:
            return
        taken = t.mask
        if end.guard:
            holds = source(end.guard[0], np.bool_, self._kernel)(t)
            taken = taken & (holds if end.guard[1] else ~holds)
        match end.operation:
            case "bra":
                t.pc[taken] = self._kernel.labels[end.operands[0]]
            case "ret" | "exit":
                t.exited |= taken
            case "trap":
                if taken.any():
                    raise t.fault(end, "the kernel stops itself", int(np.flatnonzero(taken)[0]))
            case _:
                t.waiting |= taken

    def _block(self, at: int) -> _Block:
        if at not in self._blocks:
            self._blocks[at] = self._decoded(at)
        return self._blocks[at]

    def _decoded(self, at: int) -> _Block:
        steps: list[tuple[Instruction, Step]] = []
        code = self._kernel.instructions
        while at < len(code):
            instruction = code[at]
            at += 1
            if _ends(instruction):
                return _Block(tuple(steps), instruction, at)
            steps.append((instruction, _guarded(instruction, self._kernel)))
            if at in self._leaders:
                return _Block(tuple(steps), None, at)
        raise PtxError(f"{self._kernel.name} has no ret")


def _ends(instruction: Instruction) -> bool:
    """Whether the instruction jumps, ends the thread, or is a barrier of the block."""
    if instruction.operation in ("bar", "barrier"):
        if "warp" in instruction.modifiers:
            return False
        if instruction.operands[0] != "0" or len(instruction.operands) > 1 or "sync" not in instruction.modifiers:
            raise PtxError(f"line {instruction.line}: `{instruction}`: only bar.sync 0 of all threads is here")
        return True
    return instruction.operation in ("bra", "ret", "exit", "trap")


def _guarded(instruction: Instruction, kernel: Kernel) -> Step:
    """The instruction's step, for the threads whose guard holds."""
    step = _build(instruction, kernel)
    if instruction.guard is None:
        return step
    holds, wanted = source(instruction.guard[0], np.bool_, kernel), instruction.guard[1]

    def guarded(t: Threads) -> None:
        mask, full = t.mask, t.full
        t.mask, t.full = mask & (holds(t) if wanted else ~holds(t)), False
        if t.mask.any():
            step(t)
        t.mask, t.full = mask, full

    return guarded


def _build(instruction: Instruction, kernel: Kernel) -> Step:
    if instruction.operation in ("bar", "barrier"):  # of a warp: its lanes are in step
        return lambda t: None
    for table in (memory.BUILDERS, warp.BUILDERS):
        if instruction.operation in table:
            return table[instruction.operation](instruction, kernel)
    return build_arithmetic(instruction, kernel)
