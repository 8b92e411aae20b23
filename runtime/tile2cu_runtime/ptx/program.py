"""Executes a kernel's instructions for all threads of some blocks at once.

The threads with the lowest instruction index run first, so that diverged threads reconverge. A warp or warpgroup
instruction waits for its missing threads. If all threads wait, an async-proxy copy completes; if none is in flight, the
kernel hangs, which is a fault.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.ptx import barriers, memory, warp, wgmma
from tile2cu_runtime.ptx.arithmetic import build_arithmetic
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.operands import source
from tile2cu_runtime.ptx.parse import Instruction, Kernel
from tile2cu_runtime.ptx.state import WARP, Getter, Step, Threads

_REGISTER = re.compile(r"[%\w$@]+")
# Instructions whose first operand is not a destination register.
_WRITE_NOTHING = frozenset((
    "bar", "barrier", "bra", "cp", "exit", "fence", "griddepcontrol", "membar", "nanosleep", "prefetch", "red", "ret",
    "setmaxnreg", "st", "stmatrix", "trap",
))  # fmt: skip


@dataclass(frozen=True)
class _Action:
    """An instruction's step, the lanes that must execute it together, and the registers that it reads and writes."""

    instruction: Instruction
    step: Step
    members: Getter | None
    reads: frozenset[str]
    writes: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class _Block:
    """Actions without a jump between them, from instruction `start` on, and the terminator: an instruction that may
    branch or make threads wait, or none before a label.
    """

    start: int
    actions: tuple[_Action, ...]
    end: Instruction | None
    next: int

    @functools.cached_property
    def first_collective(self) -> int | None:
        return next((number for number, each in enumerate(self.actions) if each.members), None)

    @functools.cached_property
    def names(self) -> frozenset[str]:
        return frozenset().union(*(each.reads | each.writes for each in self.actions))

    @functools.cached_property
    def computed(self) -> frozenset[str]:
        """Registers that get a new value. Moves only rename, since ptxas allocates registers anew."""
        return frozenset().union(*(each.writes for each in self.actions if each.instruction.operation != "mov"))


class Program:
    """A kernel's basic blocks by first instruction, decoded when first reached."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._leaders = frozenset(kernel.labels.values())
        self._blocks: dict[int, _Block] = {}
        self._has_products = any(each.operation == "wgmma" for each in kernel.instructions)

    def run(self, t: Threads, limit: int) -> int:
        """Runs all threads to their exit; returns the number of executed instructions, each counted once for all its
        threads.
        """
        executed = 0
        while not t.exited.all():
            stays = t.exited | t.waiting
            ready = ~(stays | t.parked)
            if not ready.any():
                if not t.bulk.land(t):
                    raise self._stuck(t)
                continue
            block = self._block(int(t.pc[ready].min()))
            here = ~stays & (t.pc == block.start)
            t.parked &= ~here
            self._execute(t, block, here)
            executed += len(block.actions) + 1
            if executed > limit:
                raise PtxError(f"{self._kernel.name} has executed more than {limit} instructions")
        self._finish(t)
        return executed

    # ---- a block ----------------------------------------------------------------------------------------------

    def _execute(self, t: Threads, block: _Block, here: Array) -> None:
        """Executes the block; incomplete warps stop before its first warp-wide instruction."""
        if block.first_collective is None:
            self._execute_all(t, block, here)
            return
        rows = here.reshape(-1, WARP)
        whole = np.repeat(rows.all(axis=1), WARP)
        if (here & whole).any():
            self._execute_all(t, block, here & whole)
        if (here & ~whole).any():
            self._execute_part(t, block, here & ~whole)

    def _execute_all(self, t: Threads, block: _Block, mask: Array) -> None:
        t.mask, t.full = mask, bool(mask.all())
        self._take(t, block.actions, block)
        self._end(t, block)

    def _execute_part(self, t: Threads, block: _Block, mask: Array) -> None:
        """For incomplete warps: executes up to the first collective, and the collective if all its lanes are active."""
        t.mask, t.full = mask, False
        if block.first_collective:
            self._take(t, block.actions[: block.first_collective], block)
            t.pc[mask] = block.start + block.first_collective
            return
        action = block.actions[0]
        assert action.members
        lanes = (mask.reshape(-1, WARP) << np.arange(WARP)).sum(axis=1)
        present = np.repeat(lanes, WARP)
        met = mask & (action.members(t) & ~present == 0)
        t.parked |= mask & ~met
        if met.any():
            t.mask = met
            self._take(t, (action,), block)
            t.pc[met] = block.start + 1

    def _take(self, t: Threads, actions: tuple[_Action, ...], block: _Block) -> None:
        if self._has_products:
            self._follow_products(t, actions, block)
        for action in actions:
            action.step(t)

    def _follow_products(self, t: Threads, actions: tuple[_Action, ...], block: _Block) -> None:
        """Tracks accesses to registers of wgmmas in flight."""
        for warpgroup in t.warpgroups.active(t.mask):
            warpgroup.written |= block.computed
            if not warpgroup.is_busy or not warpgroup.touches(block.names):
                continue
            thread = int(np.flatnonzero(t.mask & (t.warpgroups.of == warpgroup.number))[0])
            for action in actions:
                if warpgroup.touches(action.reads | action.writes):
                    warpgroup.access(t, action.instruction, action.reads, action.writes, thread)

    def _end(self, t: Threads, block: _Block) -> None:
        t.pc[t.mask] = block.next
        end = block.end
        if end is None:
            return
        taken = t.mask
        if end.guard:
            holds = source(end.guard[0], np.bool_, self._kernel)(t)
            taken = taken & (holds if end.guard[1] else ~holds)
        here = block.next - 1
        match end.operation:
            case "bra":
                t.pc[taken] = self._kernel.labels[end.operands[0]]
            case "ret" | "exit":
                t.exited |= taken
                t.barriers.leave(t)
                t.clusters.release(t)
            case "trap":
                if taken.any():
                    raise t.fault(end, "the kernel executes trap", int(np.flatnonzero(taken)[0]))
            case "mbarrier":
                t.mbarriers.wait(t, end, taken, self._kernel, here)
            case "wgmma":
                late = taken & ~wgmma.execute(t, end, taken, self._kernel)
                t.pc[late] = here
                t.parked |= late
            case _ if "cluster" in end.modifiers:
                t.clusters.come(t, end, taken)
            case _:
                t.barriers.come(t, end, taken, self._kernel)

    # ---- the end ----------------------------------------------------------------------------------------------

    def _stuck(self, t: Threads) -> PtxError:
        """Describes what one thread waits for."""
        for thread in np.flatnonzero(t.parked)[:1].tolist():
            instruction = self._kernel.instructions[int(t.pc[thread])]
            group = "warpgroup" if instruction.operation == "wgmma" else "warp"
            return t.fault(instruction, f"waits for threads of its {group} that do not arrive", thread)
        thread = int(np.flatnonzero(t.waiting)[0])
        at_barrier = t.barriers.waits_at[thread] >= 0
        why = t.barriers.describe(thread) if at_barrier else "for its cluster"
        if t.mbarriers.waits_at[thread] >= 0:
            why = t.mbarriers.describe(t, thread)
        # A thread that waits at an mbarrier repeats the instruction; others are already past it.
        instruction = self._kernel.instructions[int(t.pc[thread]) - int(t.mbarriers.waits_at[thread] < 0)]
        return t.fault(instruction, f"all threads wait, this one {why}", thread)

    def _finish(self, t: Threads) -> None:
        t.bulk.finish(t)
        t.warpgroups.finish(t)
        if found := t.mbarriers.unbalanced():
            place, size, maker = found
            what = "expected but not delivered" if size > 0 else "delivered but not expected"
            where = f"the mbarrier at byte {place % t.shared_stride} of shared memory"
            block = t.blocks[int(t.number[maker])]
            raise PtxError(f"{self._kernel.name}: {where} is left with {abs(size)} bytes {what} (block {block})")

    # ---- decoding -----------------------------------------------------------------------------------------------

    def _block(self, at: int) -> _Block:
        if at not in self._blocks:
            self._blocks[at] = self._decoded(at)
        return self._blocks[at]

    def _decoded(self, start: int) -> _Block:
        actions: list[_Action] = []
        code, at = self._kernel.instructions, start
        while at < len(code):
            instruction = code[at]
            at += 1
            if _ends(instruction):
                return _Block(start=start, actions=tuple(actions), end=instruction, next=at)
            actions.append(self._action(instruction))
            if at in self._leaders:
                return _Block(start=start, actions=tuple(actions), end=None, next=at)
        raise PtxError(f"{self._kernel.name} has no ret")

    def _action(self, instruction: Instruction) -> _Action:
        step = _guarded(instruction, self._kernel)
        target, *rest = instruction.operands or ("",)
        writes: frozenset[str] = frozenset()
        if instruction.operation in _WRITE_NOTHING or instruction.name.startswith("mbarrier.init"):
            rest.append(target)
        else:
            writes = self._registers(target)
        reads = self._registers(" ".join((*rest, *(instruction.guard or ())[:1])))
        return _Action(instruction, step, warp.members_of(instruction, self._kernel), reads, writes)

    def _registers(self, text: str) -> frozenset[str]:
        return frozenset(name for name in _REGISTER.findall(text) if name in self._kernel.registers)


def _ends(instruction: Instruction) -> bool:
    """Whether the instruction branches, exits, or may wait for threads of other warps."""
    match instruction.operation:
        case "bar" | "barrier":
            if "warp" in instruction.modifiers:
                return False
            if not {"sync", "arrive", "wait"} & set(instruction.modifiers):
                raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")
            return True
        case "mbarrier":
            return instruction.modifiers[0] in ("try_wait", "test_wait")
    return instruction.operation in ("bra", "ret", "exit", "trap", "wgmma")


def _guarded(instruction: Instruction, kernel: Kernel) -> Step:
    """The instruction's step, for threads whose guard is true."""
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
    for table in (memory.BUILDERS, warp.BUILDERS, barriers.BUILDERS):
        if instruction.operation in table:
            return table[instruction.operation](instruction, kernel)
    return build_arithmetic(instruction, kernel)
