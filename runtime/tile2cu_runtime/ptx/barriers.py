"""Barriers: named barriers, cluster barriers, and mbarriers.

Source: PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: bar, barrier", "... barrier.cluster",
"... mbarrier".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.operands import address, source
from tile2cu_runtime.ptx.parse import Instruction, Kernel

if TYPE_CHECKING:
    from tile2cu_runtime.ptx.state import Builder, Step, Threads

_NUMBERS = 16  # barriers per block


# ---- bar and barrier ----------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Gathering:
    """The threads that have arrived at a barrier; `wanted` is None for all of the block."""

    instruction: Instruction
    wanted: int | None
    come: int = 0


class NamedBarriers:
    """The named barriers of some blocks."""

    def __init__(self, count: int) -> None:
        self.waits_at = np.full(count, -1, np.int64)  # block * 16 + number
        self._open: dict[int, _Gathering] = {}

    def come(self, t: Threads, instruction: Instruction, taken: Array, kernel: Kernel) -> None:
        """bar.sync and barrier.sync, which wait, and barrier.arrive, which does not."""
        number, *rest = instruction.operands
        numbers = source(number, np.uint32, kernel)(t).astype(np.int64)
        counts = source(rest[0], np.uint32, kernel)(t) if rest else None
        keys = t.number * _NUMBERS + numbers
        for key in np.unique(keys[taken]):
            members = taken & (keys == key)
            wanted = int(counts[members][0]) if counts is not None else None
            gathering = self._open.setdefault(int(key), _Gathering(instruction=instruction, wanted=wanted))
            first = int(np.flatnonzero(members)[0])
            if gathering.wanted != wanted:
                other = f"{gathering.wanted} in line {gathering.instruction.line}"
                raise t.fault(instruction, f"barrier {key % _NUMBERS} with thread counts {wanted} and {other}", first)
            gathering.come += int(members.sum())
            if wanted is not None and gathering.come > wanted:
                raise t.fault(instruction, f"more than {wanted} threads arrive at barrier {key % _NUMBERS}", first)
            if "sync" in instruction.modifiers:
                t.waiting |= members
                self.waits_at[members] = key
            self._release_if_complete(t, int(key))

    def leave(self, t: Threads) -> None:
        """Threads have exited: barriers of whole blocks do not wait for them."""
        for key in [key for key, gathering in self._open.items() if gathering.wanted is None]:
            self._release_if_complete(t, key)

    def _release_if_complete(self, t: Threads, key: int) -> None:
        gathering, wanted = self._open[key], self._open[key].wanted
        if wanted is None:
            wanted = t.a_block - int(t.exited[t.number == key // _NUMBERS].sum())
        if gathering.come != wanted:
            return
        del self._open[key]
        members = self.waits_at == key
        self.waits_at[members] = -1
        t.waiting &= ~members
        if t.shadow:
            t.shadow.complete_loads(np.flatnonzero(members))
            t.shadow.meet(np.flatnonzero(members))

    def describe(self, thread: int) -> str:
        """The reason why a thread waits."""
        key = int(self.waits_at[thread])
        gathering = self._open[key]
        wanted = "all" if gathering.wanted is None else gathering.wanted
        return f"at barrier {key % _NUMBERS}, {gathering.come} of {wanted} threads have arrived"


# ---- barrier.cluster -----------------------------------------------------------------------------------------


class ClusterBarriers:
    """The cluster barriers, each an arrival and a wait. Exited threads count as arrived."""

    def __init__(self, count: int, each: int) -> None:
        self._each = each
        self._arrived = np.zeros(count, np.bool_)
        self._pending = np.zeros(count, np.bool_)  # arrived, and has not waited since
        self.waits = np.zeros(count, np.bool_)

    def come(self, t: Threads, instruction: Instruction, taken: Array) -> None:
        arrives = "arrive" in instruction.modifiers
        # A waiting thread has arrived; if its phase has completed, the arrival is already reset.
        if arrives and (taken & self._pending).any():
            raise t.fault(instruction, "a second arrival without a wait", int(np.flatnonzero(taken & self._pending)[0]))
        if arrives:
            self._arrived |= taken
            self._pending |= taken
        else:
            if (taken & ~self._pending).any():
                raise t.fault(instruction, "no arrival before the wait", int(np.flatnonzero(taken & ~self._pending)[0]))
            self._pending &= ~taken
            self.waits |= taken & self._arrived
            t.waiting |= taken & self._arrived
            if t.shadow:
                t.shadow.complete_loads(np.flatnonzero(taken & ~self._arrived))
                t.shadow.meet(np.flatnonzero(taken & ~self._arrived))
        self.release(t)

    def release(self, t: Threads) -> None:
        """Completes the phases of clusters whose threads have all arrived or exited."""
        over = (self._arrived | t.exited).reshape(-1, self._each).all(axis=1)
        members = np.repeat(over, self._each)
        woken = self.waits & members
        self._arrived &= ~members
        self.waits &= ~members
        t.waiting &= ~woken
        if t.shadow:
            t.shadow.complete_loads(np.flatnonzero(woken))
            t.shadow.meet(np.flatnonzero(woken))


# ---- mbarrier -----------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _MemoryBarrier:
    """The arrivals per phase, the pending ones, and the expected bytes that have not arrived."""

    count: int
    pending: int
    maker: int  # the initialising thread
    bytes: int = 0
    phase: int = 0
    fenced: bool = False


class MemoryBarriers:
    """The mbarriers of some blocks, by byte offset in the blocks' shared memories."""

    def __init__(self, count: int) -> None:
        self.waits_at = np.full(count, -1, np.int64)
        self._barriers: dict[int, _MemoryBarrier] = {}

    def initialise(self, t: Threads, instruction: Instruction, at: Array, counts: Array) -> None:
        for thread in np.flatnonzero(t.mask):
            place, count = self.place(t, instruction, at, int(thread)), int(counts[thread])
            if not 1 <= count < 1 << 20:
                raise t.fault(instruction, f"an arrival count of {count}", int(thread))
            self._barriers[place] = _MemoryBarrier(count=count, pending=count, maker=int(thread))

    def fence(self, threads: Array) -> None:
        """fence.mbarrier_init, or a proxy fence, of these threads: makes their initialisations visible to copies."""
        makers = set(threads.tolist())
        for barrier in self._barriers.values():
            barrier.fenced |= barrier.maker in makers

    def place(self, t: Threads, instruction: Instruction, at: Array, thread: int) -> int:
        """The address of the thread's operand. A fault if it is no valid mbarrier address."""
        offset, block = t.in_shared(instruction, int(at[thread]), thread)
        if offset % 8 or not 0 <= offset <= t.shared_bytes - 8:
            raise t.fault(instruction, f"an mbarrier cannot be at byte {offset} of shared memory", thread)
        return offset + block * t.shared_stride

    def find(self, t: Threads, instruction: Instruction, place: int, thread: int) -> _MemoryBarrier:
        """The mbarrier at an address. A fault if it is not initialised."""
        if place not in self._barriers:
            offset = place % t.shared_stride
            raise t.fault(instruction, f"no mbarrier is initialised at byte {offset} of shared memory", thread)
        return self._barriers[place]

    def target(self, t: Threads, instruction: Instruction, place: int, thread: int) -> None:
        """The mbarrier on which a copy completes. A fault if its initialisation is not fenced."""
        if not self.find(t, instruction, place, thread).fenced:
            raise t.fault(instruction, "no fence.mbarrier_init since the barrier's mbarrier.init", thread)

    def arrive(
        self, t: Threads, instruction: Instruction, place: int, thread: int, *, announced: int = 0, count: int = 1
    ) -> int:
        """Expects `bytes` bytes, then arrives `count` times. Returns the phase before."""
        barrier = self.find(t, instruction, place, thread)
        phase = barrier.phase
        barrier.bytes += announced
        if count > barrier.pending:
            what = f"more than {barrier.count} arrivals while {barrier.bytes} bytes are pending"
            raise t.fault(instruction, what, thread)
        barrier.pending -= count
        self._complete(t, place, barrier)
        return phase

    def promise(self, t: Threads, instruction: Instruction, place: int, thread: int) -> None:
        """Adds one pending arrival to this phase."""
        self.find(t, instruction, place, thread).pending += 1

    def deliver(self, t: Threads, place: int, size: int) -> None:
        """Delivers the bytes of a copy."""
        self._barriers[place].bytes -= size
        self._complete(t, place, self._barriers[place])

    def _complete(self, t: Threads, place: int, barrier: _MemoryBarrier) -> None:
        if barrier.pending or barrier.bytes:
            return
        barrier.phase += 1
        barrier.pending = barrier.count
        woken = self.waits_at == place
        self.waits_at[woken] = -1
        t.waiting &= ~woken

    def wait(self, t: Threads, instruction: Instruction, taken: Array, kernel: Kernel, here: int) -> None:
        """try_wait and test_wait: a thread whose phase has not completed repeats the instruction later."""
        target, place, state, *_ = instruction.operands
        at, wanted = address(place, kernel)(t), source(state, np.uint64, kernel)(t)
        over = np.zeros(t.count, np.bool_)
        for thread in np.flatnonzero(taken):
            where = self.place(t, instruction, at, int(thread))
            phase = self.find(t, instruction, where, int(thread)).phase
            # The token of mbarrier.arrive is the index of its phase.
            of = int(wanted[thread])
            over[thread] = (phase ^ of) & 1 if "parity" in instruction.modifiers else phase > of
            if not over[thread]:
                self.waits_at[thread] = where
        late = taken & ~over
        t.pc[late] = here
        t.waiting |= late
        mask, full, t.mask, t.full = t.mask, t.full, over, False
        t.write(target, over)
        t.mask, t.full = mask, full
        if t.shadow:
            t.shadow.meet(np.flatnonzero(over))

    def describe(self, t: Threads, thread: int) -> str:
        """The reason why a thread waits."""
        place = int(self.waits_at[thread])
        barrier = self._barriers[place]
        missing = f"{barrier.pending} of {barrier.count} arrivals and {barrier.bytes} bytes are pending"
        return f"at the mbarrier at byte {place % t.shared_stride} of shared memory, where {missing}"

    def unbalanced(self) -> tuple[int, int, int] | None:
        """An mbarrier with expected bytes that were not delivered, or the reverse: address, bytes, initialising
        thread.
        """
        for place, barrier in self._barriers.items():
            if barrier.bytes:
                return place, barrier.bytes, barrier.maker
        return None


def _build(instruction: Instruction, kernel: Kernel) -> Step:
    """mbarrier.init, .arrive, .arrive.expect_tx, .expect_tx and .inval."""
    what, operands = instruction.modifiers[0], list(instruction.operands)
    target = operands.pop(0) if what == "arrive" else "_"
    at = address(operands[0], kernel)
    number = source(operands[1] if len(operands) > 1 else "1", np.uint32, kernel)
    if what not in ("init", "inval", "arrive", "expect_tx") or "noComplete" in instruction.modifiers:
        raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")
    announces = "expect_tx" in instruction.modifiers

    def initialise(t: Threads) -> None:
        t.mbarriers.initialise(t, instruction, at(t), number(t))

    def step(t: Threads) -> None:
        places, counts, phases = at(t), number(t), np.zeros(t.count, np.uint64)
        for thread in np.flatnonzero(t.mask).tolist():
            place = t.mbarriers.place(t, instruction, places, thread)
            announced = int(counts[thread]) if announces else 0
            count = 0 if what == "expect_tx" else 1 if announces else int(counts[thread])
            phases[thread] = t.mbarriers.arrive(t, instruction, place, thread, announced=announced, count=count)
        if target != "_":
            t.write(target, phases)

    return {"init": initialise, "inval": lambda t: None}.get(what, step)


BUILDERS: dict[str, Builder] = {"mbarrier": _build}
