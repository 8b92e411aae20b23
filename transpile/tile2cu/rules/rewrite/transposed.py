"""A loop that does what a copy does: it stores a fragment's transpose to a tensor."""

from tile2cu.core.expr import Binary, Call, Expr, Load, Var, int_const, static_value, walk
from tile2cu.core.program import Buffer, Copy, Parallel, Range, Region, Scope, Store
from tile2cu.rules.rewrite.tiles import whole


def transposing(op: Parallel) -> Copy | None:
    """The copy that a loop over a fragment's elements (i, j) is, which stores them at [..., a + j, b + i]."""
    if len(op.vars) != 2 or len(op.body) != 1 or not isinstance(store := op.body[0], Store) or store.op:
        return None
    value = store.value
    if isinstance(value, Call) and value.function == "cast" and value.dtype == store.buffer.dtype:
        value = value.args[0]
    if not isinstance(value, Load) or not isinstance(value.buffer, Buffer) or value.indices != op.vars:
        return None
    tile, tensor = value.buffer, store.buffer
    extents = tuple(static_value(extent) for extent in op.extents)
    if (
        tile.scope is not Scope.FRAGMENT
        or tensor.scope is not Scope.GLOBAL
        or tensor.rank < 2
        or tile.rank != 2
        or extents != tile.static_shape
    ):
        return None
    *outer, row, col = store.indices
    i, j = op.vars
    starts = (*outer, *(_start(index, var) for index, var in ((row, j), (col, i))))
    if any(start is None or any(part in (i, j) for part in walk(start)) for start in starts):
        return None
    ones = [int_const(1)] * len(outer)
    parts = zip(starts, (*ones, *reversed(op.extents)), strict=True)
    ranges = tuple(Range(start=start, extent=extent) for start, extent in parts if start is not None)
    kept = (tensor.rank - 2, tensor.rank - 1)
    dst = Region(buffer=tensor, ranges=ranges, kept=kept, whole=False, span=op.span)
    return Copy(src=whole(tile, op), dst=dst, transposed=True, span=op.span, comments=op.comments, trailing=op.trailing)


def _start(index: Expr, var: Var) -> Expr | None:
    """What is added to a loop's index; None for other indices."""
    match index:
        case Var() if index is var:
            return int_const(0)
        case Binary(op="+", lhs=start, rhs=Var() as last) if last is var:
            return start
        case Binary(op="+", lhs=Var() as first, rhs=start) if first is var:
            return start
        case _:
            return None
