"""The async proxy's view of shared memory: the last store to and load from each word, and copies in flight.

Threads store through the generic proxy; wgmma and TMA access memory through the async proxy, and observe a store only
after a fence.proxy.async of a thread that has synchronised with it: the storing thread, or one that passed a barrier
after the store and either is the reader, or passed another barrier before the reader did.

A copy by TMA may overwrite what threads have loaded when their loads have completed. An arrival at an mbarrier does not
wait for them (on an H200 an ldmatrix behind another warpgroup's wgmma reads what TMA has written since); a
fence.proxy.async of the loading thread does, as bar.sync and barrier.cluster do.
[PTX ISA 9.0, "Memory Consistency Model: Proxy-preserved base causality order"; "membar/fence: fence.proxy"]
"""

from __future__ import annotations

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array

CHUNK, _WORD, _WORDS = 16, 4, np.arange(4)
_THREADS = 1 << 14  # more than the threads that run at once


class Shadow:
    """The shadow of some blocks' shared memories, which are consecutive; offsets are bytes from the first.

    `number`: each thread's block.
    """

    def __init__(self, size: int, number: Array) -> None:
        # Time and thread of the last store to each word; 0 if it is unwritten or was written by the async proxy.
        self._stores = np.zeros(size // _WORD + CHUNK, np.int64)
        self._loads = np.zeros_like(self._stores)  # the last load, likewise
        self._in_flight = np.zeros(size // CHUNK + 1, np.uint8)
        self._copies = 0
        self._now = 1
        self._number = number
        # By thread: the time up to which its loads have completed.
        self._loaded = np.zeros(len(number), np.int64)
        # By thread: its last fence and its last barrier. By block and by thread: the time up to which stores are fenced
        # by a thread that had synchronised with them: any thread, or one whose fence the thread has synchronised with.
        self._fenced, self._met = np.zeros(len(number), np.int64), np.zeros(len(number), np.int64)
        self._behind, self._known = np.zeros(number[-1] + 1, np.int64), np.zeros(len(number), np.int64)

    def store(self, at: Array, width: int, threads: Array) -> None:
        """Threads stored `width` bytes each."""
        self._now += 1
        words = (at >> 2)[:, None] + _WORDS[: max(1, width // _WORD)]
        self._stores[words] = (self._now * _THREADS + threads)[:, None]

    def load(self, at: Array, width: int, threads: Array) -> None:
        """Threads loaded `width` bytes each."""
        self._now += 1
        words = (at >> 2)[:, None] + _WORDS[: max(1, width // _WORD)]
        self._loads[words] = (self._now * _THREADS + threads)[:, None]

    def complete_loads(self, threads: Array) -> None:
        """All loads of these threads have completed."""
        self._loaded[threads] = self._now

    def fence(self, threads: Array) -> None:
        """fence.proxy.async of these threads."""
        self.complete_loads(threads)
        self._now += 1
        self._fenced[threads] = self._now
        self._known[threads] = np.maximum(self._known[threads], self._met[threads])
        np.maximum.at(self._behind, self._number[threads], self._met[threads])

    def meet(self, threads: Array) -> None:
        """These threads have passed a barrier: earlier stores may be synchronised with."""
        self._now += 1
        self._met[threads] = self._now
        self._known[threads] = np.maximum(self._known[threads], self._behind[self._number[threads]])

    def unfenced(self, chunks: Array, readers: Array) -> tuple[int, int] | None:
        """Among 16-byte chunks that the async proxy reads for these threads: one that is not fenced, and the thread
        that stored it.
        """
        stores = self._stores[(chunks >> 2)[:, None] + _WORDS]
        if not stores.any():
            return None
        time, thread = stores // _THREADS, stores % _THREADS
        bad = np.argwhere((time > self._fenced[thread]) & (time > self._known[readers].min()))
        if not len(bad):
            return None
        row, word = bad[0]
        return int(chunks[row]) + _WORD * int(word), int(thread[row, word])

    def outstanding(self, chunks: Array) -> tuple[int, int] | None:
        """Among 16-byte chunks: a byte of which a load may not have completed, and the thread that loads it."""
        loads = self._loads[(chunks >> 2)[:, None] + _WORDS]
        time, thread = loads // _THREADS, loads % _THREADS
        bad = np.argwhere(time > self._loaded[thread])
        if not len(bad):
            return None
        row, word = bad[0]
        return int(chunks[row]) + _WORD * int(word), int(thread[row, word])

    # ---- copies in flight -----------------------------------------------------------------------------------

    def begin(self, chunks: Array) -> None:
        """A copy into these chunks has been issued."""
        self._copies += 1
        self._in_flight[chunks // CHUNK] = 1

    def end(self, chunks: Array) -> None:
        """It has completed."""
        self._copies -= 1
        self._in_flight[chunks // CHUNK] = 0
        self._stores[(chunks >> 2)[:, None] + _WORDS] = 0

    def in_flight(self, at: Array) -> Array | None:
        """Which of these addresses a copy in flight will write; None if none."""
        if not self._copies:
            return None
        found: Array = self._in_flight[at // CHUNK] != 0
        return found if found.any() else None
