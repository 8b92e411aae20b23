"""A loop that is a transposing copy: it stores a fragment's transpose to a tensor."""

from tile2cu.analysis.linear import rest_of_sum
from tile2cu.core.expr import Call, Load, int_const, static_value, walk
from tile2cu.core.program import Buffer, Copy, Parallel, Range, Region, Scope, Store
from tile2cu.passes.tiles import whole


def transposing(op: Parallel) -> Copy | None:
    """The copy that a loop over a fragment's elements (i, j) is, which stores them at [..., a + j, b + i]."""
    store = op.body[0] if len(op.body) == 1 else None
    tile = stored_tile(store, op) if isinstance(store, Store) else None
    if not isinstance(store, Store) or tile is None:
        return None
    tensor = store.buffer
    *outer, row, col = store.indices
    i, j = op.vars
    starts = (*outer, *(rest_of_sum(index, var) for index, var in ((row, j), (col, i))))
    if any(start is None or any(part in (i, j) for part in walk(start)) for start in starts):
        return None
    ones = [int_const(1)] * len(outer)
    parts = zip(starts, (*ones, *reversed(op.extents)), strict=True)
    ranges = tuple(Range(start=start, extent=extent) for start, extent in parts if start is not None)
    kept = (tensor.rank - 2, tensor.rank - 1)
    dst = Region(buffer=tensor, ranges=ranges, kept=kept, whole=False, span=op.span)
    return Copy(src=whole(tile, op), dst=dst, transposed=True, span=op.span, comments=op.comments, trailing=op.trailing)


def stored_tile(store: Store, op: Parallel) -> Buffer | None:
    """The fragment of which a loop over all of its elements (i, j) stores each, unchanged or cast, to a tensor."""
    value = store.value
    if isinstance(value, Call) and value.function == "cast" and value.dtype == store.buffer.dtype:
        value = value.args[0]
    if store.op or len(op.vars) != 2 or not isinstance(value, Load) or not isinstance(value.buffer, Buffer):
        return None
    tile, tensor = value.buffer, store.buffer
    extents = tuple(static_value(extent) for extent in op.extents)
    found = tile.scope is Scope.FRAGMENT and tensor.scope is Scope.GLOBAL and tensor.rank > 1
    return tile if found and value.indices == op.vars and tile.rank == 2 and extents == tile.static_shape else None
