"""A loop that is a copy where a condition holds for all of its elements, as for the rows of a sequence."""

from msgspec.structs import replace

from tile2cu.analysis.accesses import variables
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.linear import rest_of_sum
from tile2cu.core.expr import int_const, negated
from tile2cu.core.program import Copy, If, Parallel, Range, Region, Store
from tile2cu.passes.mask_after_gemm import some_fails
from tile2cu.passes.tiles import whole
from tile2cu.passes.transposed_stores import stored_tile


def bounded(op: Parallel, bounds: Bounds) -> tuple[Copy, If] | None:
    """The copy that an elementwise loop over a fragment is where its condition holds for all elements, in a branch.

    The loop stores elements (i, j) at [..., a + i, ..., b + j]; it is the other arm of the branch. In packed sequences
    the rows after a sequence's end belong to the next one.
    """
    match op.body:
        case (If(then=(Store() as store,), orelse=()) as guard,):
            tile = stored_tile(store, op)
        case _:
            return None
    if tile is None:
        return None
    i, j = op.vars
    *outer, last = store.indices
    row = next((dim for dim, index in enumerate(outer) if i in variables(index)), None)
    fails = some_fails(guard.condition, dict(zip(op.vars, op.extents, strict=True)), bounds)
    if row is None or fails is None:
        return None
    starts = [*outer, rest_of_sum(last, j)]
    starts[row] = rest_of_sum(outer[row], i)
    if any(start is None or variables(start) & {i, j} for start in starts):
        return None
    extents = {row: op.extents[0], len(outer): op.extents[1]}
    ranges = (
        Range(start=start, extent=extents.get(dim, int_const(1)))
        for dim, start in enumerate(starts)
        if start is not None
    )
    dst = Region(buffer=store.buffer, ranges=tuple(ranges), kept=(row, len(outer)), whole=False, span=op.span)
    copy = Copy(src=whole(tile, op), dst=dst, span=op.span)
    loop = replace(op, comments=(), trailing="")
    branch = If(condition=negated(fails), then=(copy,), orelse=(loop,), span=op.span, comments=op.comments)
    return copy, replace(branch, trailing=op.trailing)
