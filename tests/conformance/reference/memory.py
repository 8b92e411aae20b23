"""Tensors and tiles: elements by arrays of indices, and boxes."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np

from tests.conformance.reference.numbers import Array, CannotInterpret, KernelFault, rounded, same_bits, undefined
from tests.conformance.reference.updates import Updates
from tile2cu.core.expr import Expr, static_value
from tile2cu.core.program import Buffer, Scope

Box = tuple[range, ...]


def _unknown_size(extent: Expr) -> int:
    raise CannotInterpret("a tensor in a shape known at run time")


class Memory:
    """The contents of all buffers that a block can access, floats as float64.

    A private array (Scope.LOCAL, and a fragment that only single threads use) has a leading dimension: one copy for
    each of the elements that are computed together, or a single one.
    """

    def __init__(self) -> None:
        self._data: dict[int, Array] = {}
        self.size_of: Callable[[Expr], int] = _unknown_size
        # Which block wrote each element of a tensor in this launch, since its blocks all waited for one another so many
        # times; None where some may wait for others.
        self._writers: dict[tuple[int, int], Array] | None = None
        self._block = self._phase = 0
        # Fragments in a loop over elements: their contents before it, and the iteration that wrote each element since.
        self._before: dict[int, tuple[Array, Array]] = {}
        self.updates = Updates()
        self._of_threads: frozenset[int] = frozenset()  # fragments of which each thread has one of its own
        # The tile that each shared memory was written as last, itself or a view of it as another type.
        self._seen_as: dict[int, Buffer] = {}

    def begin_loop(self, fragments: list[Buffer]) -> None:
        """Begins a loop over elements that writes these: an iteration reads the previous contents, or what it wrote."""
        self._before = {id(tile): (self._of(tile).copy(), np.full(tile.static_shape, -1)) for tile in fragments}

    def end_loop(self) -> None:
        self._before = {}

    def begin_launch(self, *, ordered: bool, of_threads: frozenset[Buffer] = frozenset()) -> None:
        """Another launch. `ordered`: its blocks order what they do by atomics, so that they may share elements.
        `of_threads`: the fragments that only single threads use."""
        self._writers, self._of_threads = None if ordered else {}, frozenset(map(id, of_threads))
        self.updates = Updates()

    def _is_private(self, buffer: Buffer) -> bool:
        return buffer.scope is Scope.LOCAL or id(buffer) in self._of_threads

    def of_block(self, block: int) -> Memory:
        """A block's memory: the tensors, and its own tiles."""
        found = copy(self)
        found._data, found._block, found._before, found._seen_as = dict(self._data), block, {}, {}
        return found

    def begin_phase(self) -> None:
        """All blocks have waited for one another: what they wrote is there for all."""
        self._phase += 1

    def give(self, buffer: Buffer, data: Array) -> None:
        """The contents of a tensor."""
        self._data[id(buffer)] = data

    def allocate(self, buffer: Buffer) -> None:
        """Undefined contents of a tile."""
        if buffer.of is not None:
            return
        shape = buffer.static_shape
        self._data[id(buffer)] = undefined((1, *shape) if self._is_private(buffer) else shape, buffer.dtype)

    def _of(self, buffer: Buffer) -> Array:
        """What a buffer holds; a view shares its elements with what it shows."""
        if buffer.of is not None:
            shape = [self._extent(extent) for extent in buffer.shape]
            if buffer.dtype == buffer.of.dtype and buffer.scope is not Scope.LOCAL:
                return self._of(buffer.of).reshape(shape)
            if buffer.scope is not Scope.SHARED:
                raise self._bits(buffer)
            if id(buffer) not in self._data:
                self._data[id(buffer)] = undefined(tuple(shape), buffer.dtype)
            return self._data[id(buffer)]
        if id(buffer) not in self._data:
            raise (
                self._elsewhere(buffer) if buffer.scope is Scope.LOCAL else CannotInterpret(f"the buffer {buffer.name}")
            )
        return self._data[id(buffer)]

    def _bits(self, buffer: Buffer) -> CannotInterpret:
        return CannotInterpret(f"{buffer.name}, the bits of {buffer.memory.name} as {buffer.dtype}")

    def _seen(self, buffer: Buffer) -> None:
        """A tile is read: if its memory was written as another type, its elements are made of those bits."""
        if buffer.scope is not Scope.SHARED:
            return
        last = self._seen_as.setdefault(id(buffer.memory), buffer)
        if last.dtype != buffer.dtype:
            found = same_bits(self._of(last), last.dtype, buffer.dtype)
            if found.size != self._of(buffer).size:
                raise self._bits(buffer)
            self._of(buffer)[...] = found.reshape(self._of(buffer).shape)

    def _extent(self, extent: Expr) -> int:
        """An extent of a view."""
        number = static_value(extent)
        return self.size_of(extent) if number is None else int(number)

    def _written(self, buffer: Buffer, chosen: tuple[object, ...]) -> None:
        """Elements are written; of a tensor, no other block may have written them."""
        if buffer.scope is Scope.SHARED:
            if self._seen_as.get(id(buffer.memory), buffer).dtype != buffer.dtype:
                self._of(buffer)[...] = undefined((1,), buffer.dtype)
            self._seen_as[id(buffer.memory)] = buffer
        if self._writers is not None and buffer.scope is Scope.GLOBAL:
            base = self._of(buffer.memory)
            key = self._phase, id(buffer.memory)
            writers = self._writers.setdefault(key, np.full(base.shape, -1, np.int32))
            writers = writers.reshape(self._of(buffer).shape)
            self._check(buffer, writers[chosen])
            writers[chosen] = self._block

    def _is_read(self, buffer: Buffer, chosen: tuple[object, ...]) -> None:
        """Elements are read; of a tensor, no other block may have written them in this launch."""
        self._seen(buffer)
        if self._writers is None:
            return
        if (writers := self._writers.get((self._phase, id(buffer.memory)))) is not None:
            self._check(buffer, writers.reshape(self._of(buffer).shape)[chosen])

    def _check(self, buffer: Buffer, writers: Array) -> None:
        others = (writers >= 0) & (writers != self._block)
        if others.any():
            raise KernelFault(f"blocks {writers[others][0]} and {self._block} meet at an element of {buffer.name}")

    def data(self, buffer: Buffer) -> Array:
        """All of a buffer; a private array must be the same for all."""
        self._seen(buffer)
        return self._whole(buffer)

    def of_each(self, buffer: Buffer, count: int) -> Array:
        """A private array of each of so many elements, which are the first dimension."""
        data = self._of(buffer)
        if len(data) == count:
            return data
        if len(data) > 1:
            raise self._elsewhere(buffer)
        self._data[id(buffer)] = np.repeat(data, count, axis=0)
        return self._data[id(buffer)]

    def _elsewhere(self, buffer: Buffer) -> CannotInterpret:
        return CannotInterpret(f"the private array {buffer.name} in another loop than the one that wrote it")

    def _whole(self, buffer: Buffer) -> Array:
        data = self._of(buffer)
        if buffer.scope is not Scope.LOCAL:
            return data
        if len(data) > 1:
            raise CannotInterpret(f"the private array {buffer.name} as a whole")
        return data[0]

    def load(self, buffer: Buffer, indices: list[Array], mask: Array) -> Array:
        """Elements at indices; 0 outside of a tensor, and where the mask is not set."""
        data, places = self._places(buffer, indices, mask, reads=True)
        inside = self._inside(buffer, data, places, mask)
        clipped = [np.clip(place, 0, max(extent - 1, 0)) for place, extent in zip(places, data.shape, strict=True)]
        if not inside.any():
            return np.zeros(1, data.dtype)
        self._is_read(buffer, tuple(np.broadcast_to(place, inside.shape)[inside] for place in clipped))
        found = data[tuple(clipped)]
        if id(buffer) in self._before:
            before, turns = (part[tuple(clipped)] for part in self._before[id(buffer)])
            found = np.where(turns == np.arange(len(mask)), found, before)
        return np.where(inside, found, np.zeros((), data.dtype))

    def store(self, buffer: Buffer, indices: list[Array], values: Array, mask: Array) -> None:
        """Writes elements where the mask is set and, for a tensor, where they are in bounds."""
        data, places = self._places(buffer, indices, mask)
        inside = self._inside(buffer, data, places, mask)
        chosen = tuple(np.broadcast_to(place, mask.shape)[inside] for place in places)
        self._written(buffer, chosen)
        data[chosen] = found = np.broadcast_to(rounded(values, buffer.dtype), mask.shape)[inside]
        if buffer.scope is Scope.FRAGMENT and not np.array_equal(data[chosen], found, equal_nan=data.dtype.kind == "f"):
            raise CannotInterpret(f"{buffer.name}, one element of which several threads write")
        if id(buffer) in self._before:
            self._before[id(buffer)][1][chosen] = np.flatnonzero(inside)

    def update(
        self,
        buffer: Buffer,
        indices: list[Array],
        values: Array,
        mask: Array,
        combine: np.ufunc,
        *,
        who: Array | None = None,
        asks: bool = False,
    ) -> Array:
        """An atomic update of elements; several may meet at one. Returns the old values.

        `who`: numbers of the threads, in launches where some ask for the old value.
        """
        self._seen(buffer)
        data, places = self._places(buffer, indices, mask)
        inside = self._inside(buffer, data, places, mask)
        chosen = tuple(np.broadcast_to(place, mask.shape)[inside] for place in places)
        if who is not None:
            key = self._block if buffer.scope is Scope.SHARED else None, id(buffer.memory)
            self.updates.note(key, data.shape, chosen, who[inside], asks=asks)
        old = np.zeros(mask.shape, data.dtype)
        old[inside] = data[chosen]
        combine.at(data, chosen, np.broadcast_to(rounded(values, buffer.dtype), mask.shape)[inside])
        return old

    def _places(
        self, buffer: Buffer, indices: list[Array], mask: Array, *, reads: bool = False
    ) -> tuple[Array, list[Array]]:
        """(contents, indices of all of its dimensions); a private array that is written gets a copy for each element
        here."""
        data = self._of(buffer)
        places = [index.astype(np.int64) for index in indices]
        if not self._is_private(buffer):
            return data, places
        if reads and len(data) == 1:  # what all elements share they still share
            return data, [np.zeros(1, np.int64), *places]
        return self.of_each(buffer, len(mask)), [np.arange(len(mask)), *places]

    def _inside(self, buffer: Buffer, data: Array, places: list[Array], mask: Array) -> Array:
        inside = mask
        for place, extent in zip(places, data.shape, strict=True):
            inside = inside & (place >= 0) & (place < extent)
        if buffer.scope is not Scope.GLOBAL and not np.array_equal(inside, mask):
            raise KernelFault(f"an index outside of {buffer.name} {data.shape}")
        return inside

    def box(self, buffer: Buffer, ranges: Box, *, atomic: bool = False) -> Array:
        """The elements of a box; 0 where it is out of bounds of a tensor."""
        data = self._whole(buffer)
        found = np.zeros([len(part) for part in ranges], data.dtype)
        inner, outer = _overlap(buffer, data, ranges)
        if not atomic:
            self._is_read(buffer, outer)
        found[inner] = data[outer]
        return found

    def set_box(self, buffer: Buffer, ranges: Box, values: Array, *, atomic: bool = False) -> None:
        """Writes a box; elements that are out of bounds of a tensor are dropped."""
        data = self._whole(buffer)
        inner, outer = _overlap(buffer, data, ranges)
        if not atomic:
            self._written(buffer, outer)
        data[outer] = values[inner]

    def enter_loop(self, buffers: tuple[Buffer, ...], mask: Array) -> list[tuple[Buffer, Array, Array]]:
        """Threads of the mask share a loop: each private array's contents, as its elements access them.

        Elements access the contents of all those threads, and no thread's own ones.
        """
        found: list[tuple[Buffer, Array, Array]] = []
        for buffer in buffers:
            if buffer.scope is Scope.LOCAL and buffer.of is None:
                data = seen = self._data[id(buffer)]
                if len(data) == len(mask) > 1:
                    (first, *_), rest = data[mask], data[mask][1:]
                    alike = np.array_equal(rest, np.broadcast_to(first, rest.shape), equal_nan=data.dtype.kind == "f")
                    seen = first[None].copy() if alike else data[:0]
                    if alike:
                        self._data[id(buffer)] = seen
                    else:
                        del self._data[id(buffer)]
                found.append((buffer, data, seen))
        return found

    def leave_loop(self, arrays: list[tuple[Buffer, Array, Array]]) -> None:
        """What elements of a loop wrote for their own is undefined after it; the threads' other arrays are kept."""
        for buffer, data, seen in arrays:
            if not len(seen) or self._data[id(buffer)] is seen:
                self._data[id(buffer)] = data
            else:
                self.allocate(buffer)


def _overlap(buffer: Buffer, data: Array, ranges: Box) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The part of a box that is within a buffer, as slices of the box and of the buffer."""
    inner, outer = [], []
    for part, extent in zip(ranges, data.shape, strict=True):
        low, high = max(part.start, 0), min(part.stop, extent)
        high = max(low, high)
        if buffer.scope is not Scope.GLOBAL and (low, high) != (part.start, part.stop):
            raise KernelFault(f"a box outside of {buffer.name} {data.shape}: {ranges}")
        inner.append(slice(low - part.start, high - part.start))
        outer.append(slice(low, high))
    return tuple(inner), tuple(outer)
