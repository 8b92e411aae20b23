"""Loops that fill a tile with gathered rows of a tensor: copies of rows, which can be prefetched."""

from msgspec.structs import replace

from tile2cu.analysis.accesses import with_values
from tile2cu.analysis.linear import rest_of_sum
from tile2cu.analysis.prefetch import unprefetchable
from tile2cu.analysis.prelude import around
from tile2cu.analysis.uses import pipelined_loops, statements
from tile2cu.core.expr import Address, Call, Expr, Load, Var, int_const, joined, static_value, walk
from tile2cu.core.program import Buffer, Copy, Launch, Let, Loop, Parallel, Range, Region, Scope, Store
from tile2cu.core.rebuild import with_instead
from tile2cu.passes.loop_to_copy import chosen
from tile2cu.passes.tiles import whole

GATHERED = "rewrite.loop.gathered-rows"


def loops_that_gather(launch: Launch, *, by_tensors: bool = False) -> Launch:
    """The launch whose pipelined loops gather rows by copies, where elementwise loops did nothing else.

        for i, j in T.Parallel(64, 32):                     row i of tile is A[rows[i], 32 * k : 32 * k + 32], or zero
            tile[i, j] = T.if_then_else(            is      where rows[i] < n does not hold
                rows[i] < n, A[rows[i], 32 * k + j], 0)

    Only where the copy can be prefetched: in its own iteration it would gain nothing. And only where integers and
    shared memory select the rows: otherwise a thread that issues copies would first wait for a tensor (measured on an
    H200: benchmarks/RESULTS.md, 'Rows that a loop gathers'). A producer's threads may wait: `by_tensors`, for loops
    whose iterations two warpgroups take alternately (`pipeline.loop.ping-pong`), tensors select rows, too.
    """
    if launch.groups > 1:
        return launch
    loops = pipelined_loops(launch)
    for op in [op for loop in loops if loop.num_stages > 1 for op in statements(loop.body, Parallel, below=False)]:
        copy = _copy(op, by_tensors)
        if copy is not None:
            launch = _if_prefetched(op, copy, launch)
    return launch


def _if_prefetched(op: Parallel, copy: Copy, launch: Launch) -> Launch:
    """The launch with the copy instead of the loop, if it can be prefetched there."""
    changed = replace(launch, body=with_instead(launch.body, {id(op): (copy,)}))
    loop = around(changed.body, copy)[-1]
    assert isinstance(loop, Loop), "the pipelined loop is around it"
    because, _ = unprefetchable(copy, loop, changed)
    return launch if because else changed


def _copy(op: Parallel, by_tensors: bool) -> Copy | None:
    """The copy of rows that a loop is; None for other loops."""
    *lets, store = op.body
    if not isinstance(store, Store) or store.op or store.indices != op.vars or len(op.vars) != 2 or op.laid_out:
        return None
    tile = store.buffer
    if tile.scope is not Scope.SHARED or tuple(map(static_value, op.extents)) != tile.static_shape:
        return None
    if not all(isinstance(stmt, Let) for stmt in lets):
        return None
    found = chosen(with_values(store.value, lets))
    if found is None or not isinstance(found[0].buffer, Buffer) or found[0].buffer.dtype != tile.dtype:
        return None
    element, conditions = found
    tensor, (row, col) = found[0].buffer, op.vars
    start = rest_of_sum(element.indices[-1], col)
    positions = (*element.indices[:-1], *conditions)
    if start is None or row in walk(start) or not any(row in walk(position) for position in positions):
        return None
    if tensor.scope is not Scope.GLOBAL or tensor.dtype.is_packed:
        return None
    scopes = (Scope.SHARED, Scope.GLOBAL) if by_tensors else (Scope.SHARED,)
    if not all(_is_of_row(part, col, scopes) for position in (start, *positions) for part in walk(position)):
        return None
    ones = [Range(start=position, extent=int_const(1)) for position in element.indices[:-1]]
    ranges = (*ones, Range(start=start, extent=op.extents[1]))
    src = Region(buffer=tensor, ranges=ranges, kept=(tensor.rank - 1,), whole=False, span=store.span)
    about = (*op.comments, *store.comments, f"Gathered rows are copied, which can be pipelined  [{GATHERED}]")
    return Copy(src=src, dst=whole(tile, op), row=row, when=joined("and", conditions), span=op.span, comments=about)


def _is_of_row(part: Expr, col: Var, scopes: tuple[Scope, ...]) -> bool:
    """Whether any thread can compute this once per row: from neither its column nor registers, but from `scopes`."""
    if isinstance(part, Load):
        return isinstance(part.buffer, Buffer) and part.buffer.scope in scopes
    in_steps = isinstance(part, Call) and part.function.startswith("atomic")
    return part != col and not in_steps and not isinstance(part, Address)
