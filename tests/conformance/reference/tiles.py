"""Operations on whole tiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.conformance.reference.expressions import Values
from tests.conformance.reference.memory import Box, Memory
from tests.conformance.reference.numbers import Array, CannotInterpret, KernelFault, converted, rounded
from tile2cu.core.expr import Expr, Var, static_value
from tile2cu.core.program import AtomicTile, Copy, Fill, Gemm, Reduce, Reduction, Region, Scan, Scope, Stmt

COMBINE: dict[Reduction, np.ufunc] = {
    Reduction.SUM: np.add,
    Reduction.MAX: np.fmax,
    Reduction.MIN: np.fmin,
    Reduction.BITAND: np.bitwise_and,
    Reduction.BITOR: np.bitwise_or,
    Reduction.BITXOR: np.bitwise_xor,
}


class Tiles:
    """Runs the statements that are operations on tiles."""

    def __init__(self, memory: Memory, values: Values) -> None:
        self.memory, self.values = memory, values

    def run(self, stmt: Stmt, mask: Array) -> bool:
        """Runs the statement if it is one of these."""
        match stmt:
            case Copy():
                for part in self._at_one_place(stmt, mask):
                    self._copy(stmt, part)
            case AtomicTile():
                self._atomic(stmt, mask)
            case Fill():
                self._fill(stmt, mask)
            case Gemm():
                self._gemm(stmt, mask)
            case Reduce():
                self._reduce(stmt, mask)
            case Scan():
                self._scan(stmt)
            case _:
                return False
        return True

    def _at_one_place(self, stmt: Copy, mask: Array) -> list[Array]:
        """The mask in parts whose threads name the same tiles: whole warps may each copy a row of their own."""
        parts = [mask]
        if len(mask) > 1 and Scope.LOCAL not in (stmt.src.buffer.scope, stmt.dst.buffer.scope) and stmt.row is None:
            for place in (*stmt.src.ranges, *stmt.dst.ranges):
                parts = [each for part in parts for each in self.values.alike(place.start, part)]
        if len(parts) > 1 and not all(_are_warps(part) for part in parts):
            raise CannotInterpret("an operation on tiles at another place for each thread")
        return parts

    def _box(self, region: Region, mask: Array, extents: tuple[Expr, ...] | None = None) -> Box:
        """The place of a region; `extents` of the kept dimensions, where the other side has them."""
        sizes = [part.extent for part in region.ranges]
        for dim, extent in zip(region.kept, extents or region.extents, strict=True):
            sizes[dim] = extent
        starts = [self.values.number(part.start, mask) for part in region.ranges]
        ends = [start + self.values.number(size, mask) for start, size in zip(starts, sizes, strict=True)]
        return tuple(map(range, starts, ends))

    def _boxes(self, src: Region, dst: Region, mask: Array) -> tuple[Box, Box]:
        """Both places; a tile's extents, or else numbers, hold for both sides."""
        pairs = zip(src.extents, dst.extents, strict=True)
        tile = dst.buffer.scope is not Scope.GLOBAL
        extents = tuple(b if static_value(a) is None or (tile and static_value(b) is not None) else a for a, b in pairs)
        return self._box(src, mask, extents), self._box(dst, mask, extents)

    def _copy(self, stmt: Copy, mask: Array) -> None:
        if len(mask) > 1 and Scope.LOCAL in (stmt.src.buffer.scope, stmt.dst.buffer.scope):
            self._copy_of_threads(stmt.src, stmt.dst, mask)
            return
        if stmt.row is not None:
            self._copy_rows(stmt, stmt.row, mask)
            return
        source, target = self._boxes(stmt.src, stmt.dst, mask)
        found = self._before_ends(stmt, source, self.memory.box(stmt.src.buffer, source), mask)
        values = rounded(found.T if stmt.transposed else found, stmt.dst.buffer.dtype)
        self.memory.set_box(stmt.dst.buffer, target, values.reshape([len(part) for part in target]))

    def _copy_rows(self, stmt: Copy, row: Var, mask: Array) -> None:
        """Each row of the destination from a place of its own, or zeros."""
        rows, *others = (range(extent) for extent in stmt.dst.buffer.static_shape)
        for number in rows:
            self.values.set(row, np.array([number]))
            target = (range(number, number + 1), *others)
            found = np.zeros([len(part) for part in target])
            if stmt.when is None or self.values.of(stmt.when, mask).astype(bool).all():
                source = self._box(stmt.src, mask)
                found = self._before_ends(stmt, source, self.memory.box(stmt.src.buffer, source), mask)
            values = rounded(found, stmt.dst.buffer.dtype)
            self.memory.set_box(stmt.dst.buffer, target, values.reshape([len(part) for part in target]))

    def _before_ends(self, stmt: Copy, source: Box, found: Array, mask: Array) -> Array:
        """A box whose elements at or past an end are zero."""
        for dim, end in enumerate(stmt.ends):
            if end is not None:
                kept = np.array(source[dim]) < self.values.number(end, mask)
                found = np.where(np.expand_dims(kept, [each for each in range(found.ndim) if each != dim]), found, 0)
        return found

    def _copy_of_threads(self, src: Region, dst: Region, mask: Array) -> None:
        """Each thread moves what it has for its own, element by element."""
        extents = [self.values.number(extent, mask) for extent in dst.extents]
        starts = [[self.values.of(part.start, mask) for part in region.ranges] for region in (src, dst)]
        for offsets in np.ndindex(*extents):
            places = []
            for region, at in zip((src, dst), starts, strict=True):
                along = dict(zip(region.kept, offsets, strict=True))
                places.append([start + along.get(dim, 0) for dim, start in enumerate(at)])
            found = self.memory.load(src.buffer, places[0], mask)
            self.memory.store(dst.buffer, places[1], found, mask)

    def _atomic(self, stmt: AtomicTile, mask: Array) -> None:
        source, target = self._boxes(stmt.src, stmt.dst, mask)
        values = converted(self.memory.box(stmt.src.buffer, source), stmt.dst.buffer.dtype)
        old = self.memory.box(stmt.dst.buffer, target, atomic=True)
        found = COMBINE[stmt.kind](old, values.reshape(old.shape))
        self.memory.set_box(stmt.dst.buffer, target, found, atomic=True)

    def _fill(self, stmt: Fill, mask: Array) -> None:
        if len(mask) > 1 and stmt.dst.buffer.scope is Scope.LOCAL:
            value = self.values.of(stmt.value, mask)
            starts = [self.values.of(part.start, mask) for part in stmt.dst.ranges]
            for offsets in np.ndindex(*(self.values.number(part.extent, mask) for part in stmt.dst.ranges)):
                places = [start + offset for start, offset in zip(starts, offsets, strict=True)]
                self.memory.store(stmt.dst.buffer, places, value, mask)
            return
        box = self._box(stmt.dst, mask)
        value = rounded(self.values.of(stmt.value, mask), stmt.dst.buffer.dtype)
        if len(np.unique(value)) > 1:
            raise CannotInterpret("a fill with another value for each thread")
        self.memory.set_box(stmt.dst.buffer, box, np.broadcast_to(value[0], [len(part) for part in box]))

    def _matrix(self, region: Region, mask: Array) -> Array:
        box = self._box(region, mask)
        kept = [len(box[dim]) for dim in region.kept]
        return self.memory.box(region.buffer, box).reshape(kept)

    def _gemm(self, stmt: Gemm, mask: Array) -> None:
        a, b = self._matrix(stmt.a, mask), self._matrix(stmt.b, mask)
        a, b = a.T if stmt.transpose_a else a, b.T if stmt.transpose_b else b
        if stmt.metadata is not None:
            metadata = self._matrix(stmt.metadata, mask)
            a = expanded(a, metadata.T if stmt.transpose_metadata else metadata)
        c = stmt.c.buffer
        a, b = (converted(side, c.dtype) for side in (a, b))
        with np.errstate(all="ignore"):
            product = a @ b
        box = self._box(stmt.c, mask)
        old = self.memory.box(c, box)
        product = product.reshape(old.shape)
        clear = stmt.clear or (stmt.clear_if is not None and self.values.of(stmt.clear_if, mask).astype(bool).any())
        self.memory.set_box(c, box, product if clear else old + product)

    def _reduce(self, stmt: Reduce, mask: Array) -> None:
        chosen, dim = ..., stmt.dim
        if len(mask) > 1 and stmt.dst.scope is Scope.LOCAL:  # each thread its own
            source, target = (self.memory.of_each(tile, len(mask)) for tile in (stmt.src, stmt.dst))
            chosen, dim = mask, dim + 1
        else:
            source, target = self.memory.data(stmt.src), self.memory.data(stmt.dst)
        values = converted(source, stmt.dst.dtype)
        with np.errstate(all="ignore"):
            found = _REDUCE[stmt.kind](values, dim).reshape(target.shape)
            if not stmt.clear:
                found = _JOIN[stmt.kind](target, found)
            if stmt.keeps_nan:
                has = np.isnan(values).any(dim).reshape(target.shape) | (np.isnan(target) & (not stmt.clear))
                found = np.where(has, np.nan, found)
        target[chosen] = found[chosen]

    def _scan(self, stmt: Scan) -> None:
        values = converted(self.memory.data(stmt.src), stmt.dst.dtype)
        if stmt.reverse:
            values = np.flip(values, stmt.dim)
        found = COMBINE[stmt.kind].accumulate(values, axis=stmt.dim)
        if stmt.kind is Reduction.MAX and stmt.dst.dtype.is_float:
            found = np.fmax(found, -np.inf)  # where it begins: NaN is no maximum
        self.memory.data(stmt.dst)[...] = np.flip(found, stmt.dim) if stmt.reverse else found


def _are_warps(mask: Array) -> bool:
    return len(mask) % 32 == 0 and bool((mask.reshape(-1, 32) == mask[::32, None]).all())


def expanded(a: Array, metadata: Array) -> Array:
    """A sparse matrix with its zeros: `a` has two of each four elements of a row, selected by 4 bits of `metadata`."""
    bits = 8 * metadata.dtype.itemsize
    words = metadata.astype(np.int64)[..., None] >> np.arange(0, bits, 4)
    codes = words.reshape(len(a), -1) & 15
    places = np.stack((codes & 3, codes >> 2), axis=-1)
    pairs = a.reshape(len(a), -1, 2)
    if np.any((places[..., 0] >= places[..., 1]) & np.any(pairs != 0, axis=-1)):
        raise KernelFault("metadata that name no two places in order")
    full = np.zeros((*places.shape[:2], 4), a.dtype)
    np.put_along_axis(full, places, pairs, axis=-1)
    return full.reshape(len(a), -1)


_REDUCE: dict[Reduction, Callable[[Array, int], Array]] = {
    Reduction.SUM: lambda x, dim: np.sum(x, dim, dtype=x.dtype),
    Reduction.MAX: np.fmax.reduce,
    Reduction.MIN: np.fmin.reduce,
    Reduction.BITAND: np.bitwise_and.reduce,
    Reduction.BITOR: np.bitwise_or.reduce,
    Reduction.BITXOR: np.bitwise_xor.reduce,
    Reduction.ABSMAX: lambda x, dim: np.fmax.reduce(np.abs(x), dim),
    Reduction.ABSSUM: lambda x, dim: np.sum(np.abs(x), dim, dtype=x.dtype),
}
_JOIN = {**COMBINE, Reduction.ABSMAX: lambda a, b: np.fmax(np.abs(a), b), Reduction.ABSSUM: lambda a, b: np.abs(a) + b}
