"""Global memory: buffers far apart in one arena, so that out-of-bounds accesses are detected."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I64, U8, Array, round_up
from tile2cu_runtime.amdgcn.byte_store import ByteStore

BASE = 0x7000_0000_0000
GAP = 4096
ALIGNMENT = 256
POISON = 0xCB


@dataclass(frozen=True)
class Buffer:
    """A part of the arena; `start` and `end` are byte offsets."""

    name: str
    start: int
    end: int

    @property
    def address(self) -> int:
        return BASE + self.start


class GlobalMemory:
    """An arena of a fixed size. The bytes between buffers are poison."""

    def __init__(self, buffers: list[tuple[str, bytes | Array]]) -> None:
        sizes = [len(content) if isinstance(content, bytes) else content.nbytes for _, content in buffers]
        self.store = ByteStore(GAP + sum(round_up(size, ALIGNMENT) + GAP for size in sizes), POISON)
        self.buffers: list[Buffer] = []
        start = GAP
        for (name, content), size in zip(buffers, sizes, strict=True):
            buffer = Buffer(name, start, start + size)
            self.buffers.append(buffer)
            self.write(buffer, content)
            start = round_up(buffer.end, ALIGNMENT) + GAP
        self._starts = [buffer.start for buffer in self.buffers]
        self._start_array = np.array(self._starts, I64)
        self._end_array = np.array([buffer.end for buffer in self.buffers], I64)

    def write(self, buffer: Buffer, content: bytes | Array) -> None:
        raw = np.frombuffer(content, U8) if isinstance(content, bytes) else content.reshape(-1).view(U8)
        self.store.bytes[buffer.start : buffer.start + raw.size] = raw

    def read(self, buffer: Buffer) -> Array:
        """The buffer's bytes."""
        return self.store.bytes[buffer.start : buffer.end]

    def is_inside(self, low: int, high: int) -> bool:
        """Whether the offsets from `low` to before `high` are in one buffer."""
        number = bisect_right(self._starts, low) - 1
        return number >= 0 and high <= self.buffers[number].end

    def inside(self, at: Array, width: int) -> Array:
        """For each offset, whether `width` bytes from it on are in one buffer."""
        number = np.searchsorted(self._start_array, at, side="right") - 1
        return (number >= 0) & (at + width <= self._end_array[number])

    def describe(self, at: int) -> str:
        """An offset relative to the nearest buffer."""
        number = max(bisect_right(self._starts, at) - 1, 0)
        nearest = self.buffers[number]
        if at < nearest.start:
            return f"{nearest.start - at} bytes before {nearest.name}"
        if number + 1 < len(self.buffers) and self.buffers[number + 1].start - at < at - nearest.end:
            following = self.buffers[number + 1]
            return f"{following.start - at} bytes before {following.name}"
        return f"byte {at - nearest.start} of {nearest.name}, which has {nearest.end - nearest.start}"
