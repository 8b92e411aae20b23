"""Loops that fill a tile from a tensor, element by element, where a copy could be prefetched: they become copies."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tile2cu.analysis.bounds import Bounds, bounds_of
from tile2cu.analysis.linear import rest_of_sum
from tile2cu.analysis.uses import pipelined_loops, statements
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Binary, Call, Const, Expr, Load, Var, binary, int_const, result_dtype, static_value, walk
from tile2cu.core.program import (
    Buffer,
    Copy,
    Launch,
    Parallel,
    Range,
    Region,
    Scope,
    Store,
)
from tile2cu.core.rebuild import with_instead
from tile2cu.core.record import Record
from tile2cu.passes.mask_after_gemm import conjuncts
from tile2cu.passes.tiles import whole

COPIED = "rewrite.loop.copied-tile"

Start = tuple[Var | None, Expr]  # of a dimension of the tensor: the loop's variable that runs over it, and the start


def loops_that_copy(launch: Launch) -> Launch:
    """The launch whose pipelined loops copy, where elementwise loops over a tile did nothing else.

        for i, j in T.Parallel(64, 32):                     T.copy(A[row, 32 * k], tile), of A's rows up to row + rows
            tile[i, j] = T.if_then_else(            is
                i < rows, A[row + i, 32 * k + j], 0)

    Copies can be prefetched. Elements that fail the condition are zero, like those out of bounds.
    """
    loops = [
        op for loop in pipelined_loops(launch) if loop.num_stages for op in statements(loop.body, Parallel, below=False)
    ]
    bounds = bounds_of(launch)
    copies = {id(op): (copy,) for op in loops if (copy := _copy(op, bounds)) is not None}
    if not copies:
        return launch
    return replace(launch, body=with_instead(launch.body, copies))


def _copy(op: Parallel, bounds: Bounds) -> Copy | None:
    """The copy that a loop is; None for other loops."""
    store = op.body[0] if len(op.body) == 1 else None
    if not isinstance(store, Store) or store.op or store.indices != op.vars or store.buffer.of is not None:
        return None
    tile, found = store.buffer, chosen(store.value)
    if tile.scope is not Scope.SHARED or tuple(map(static_value, op.extents)) != tile.static_shape or found is None:
        return None
    element, conditions = found
    tensor, starts = element.buffer, _starts(element.indices, op)
    if not isinstance(tensor, Buffer) or tensor.scope is not Scope.GLOBAL or tensor.dtype != tile.dtype:
        return None
    if starts is None:
        return None
    limits = [limit for each in conditions if (limit := _limit(each, op, starts)) is not None]
    if len(limits) < len(conditions):
        return None
    ranges = tuple(
        Range(start=start, extent=op.extents[op.vars.index(var)] if var is not None else int_const(1))
        for var, start in starts
    )
    kept = tuple(dim for dim, (var, _) in enumerate(starts) if var is not None)
    src = Region(buffer=tensor, ranges=ranges, kept=kept, whole=False, span=store.span)
    about = (
        *op.comments,
        *store.comments,
        f"A loop that only copies becomes a copy, which can be pipelined  [{COPIED}]",
    )
    ends = tuple(_end(start, tensor.shape[dim], limits, op, bounds) for dim, start in enumerate(starts))
    return Copy(
        src=src, dst=whole(tile, op), ends=() if ends.count(None) == len(ends) else ends, span=op.span, comments=about
    )


def chosen(value: Expr) -> tuple[Load, tuple[Expr, ...]] | None:
    """The element that a loop stores, and the conjunction of conditions without which it stores zero."""
    match value:
        case Load():
            return value, ()
        case Call(function="if_then_else", args=(condition, Load() as element, other)) if static_value(other) == 0:
            return element, tuple(conjuncts(condition))
        case _:
            return None


def _starts(indices: tuple[Expr, ...], op: Parallel) -> tuple[Start, ...] | None:
    """The start of a box of a tensor whose elements a loop reads in order; None where it reads others."""
    found: list[Start] = []
    for index in indices:
        inside = [var for var in op.vars if var in walk(index)]
        start = rest_of_sum(index, inside[0]) if len(inside) == 1 else index
        if len(inside) > 1 or start is None or any(var in walk(start) for var in op.vars):
            return None
        found.append((inside[0] if inside else None, start))
    return tuple(found) if tuple(var for var, _ in found if var is not None) == op.vars else None


class _Limit(Record, frozen=True):
    """A condition `before + var < value`, where `before` is 0, or what elements' indices add to the variable."""

    var: Var
    before: Expr
    value: Expr


def _limit(condition: Expr, op: Parallel, starts: tuple[Start, ...]) -> _Limit | None:
    """A condition that bounds one of a loop's variables from above by an integer that is uniform over the elements.

    So does `start + i < end` of elements at `start + i`: where that sum wraps the element is out of bounds, too. Below
    2.5 there are three elements: a limit of a float type is no extent.
    """
    if not isinstance(condition, Binary) or condition.op != "<" or not condition.rhs.dtype.is_int:
        return None
    if any(var in walk(condition.rhs) for var in op.vars):
        return None
    for var, start in starts:
        before = None if var is None else rest_of_sum(condition.lhs, var)
        if var is not None and before is not None and (before == start or static_value(before) == 0):
            return _Limit(var, before, _compared(condition))
    return None


def _end(start: Start, extent: Expr, limits: Sequence[_Limit], op: Parallel, bounds: Bounds) -> Expr | None:
    """The end of the box in a dimension under the limits; None for that of the tensor, or of the loop."""
    own = [limit for limit in limits if limit.var == start[0]]
    ends = [_behind(start[1], limit, bounds) for limit in own if not _says_nothing(limit, start, extent, op, bounds)]
    if not ends:
        return None
    least = ends[0]
    for end in ends[1:]:
        least = Call(least.dtype, "min", (least, end))
    return least


def _compared(condition: Binary) -> Expr:
    """The limit of a condition as the comparison has it: of uint32 it is an int32."""
    limit, dtype = condition.rhs, result_dtype(condition.lhs, condition.rhs)
    return limit if limit.dtype == dtype else Call(dtype, "cast", (limit,))


def _behind(first: Expr, limit: _Limit, bounds: Bounds) -> Expr:
    """The end that a limit gives a box from `first` on, or the nearest int: 2**31 - 1 is a common value for none."""
    value = limit.value
    if limit.before == first:
        return value if value.dtype == INT32 else Call(INT32, "cast", (_nearest_int(value),))
    end = binary("+", first, value)
    if end.dtype == INT32 and bounds.of_values.never_wraps(end):
        return end
    return Call(INT32, "saturating_add", (_nearest_int(first), _nearest_int(value)))


def _nearest_int(value: Expr) -> Expr:
    """A value, clamped to what an int holds."""
    if value.dtype == INT32:
        return value
    low, high = (Const(value.dtype, end) for end in (-(2**31) if value.dtype.kind == "int" else 0, 2**31 - 1))
    return Call(value.dtype, "max", (low, Call(value.dtype, "min", (value, high))))


def _least(limit: Expr, bounds: Bounds) -> Iterator[Expr]:
    """The operands of a minimum."""
    value = bounds.expanded(limit)
    if isinstance(value, Call) and value.function == "min":
        for part in value.args:
            yield from _least(part, bounds)
    else:
        yield value


def _says_nothing(limit: _Limit, start: Start, extent: Expr, op: Parallel, bounds: Bounds) -> bool:
    """Whether all operands of a limit are past the end of the loop, or the end of the tensor."""
    box = bounds.linear(op.extents[op.vars.index(limit.var)])
    rest = bounds.linear(extent).plus(bounds.linear(start[1]), -1)  # of the tensor, from where the box starts
    for each in _least(limit.value, bounds):
        value = bounds.linear(each).plus(bounds.linear(limit.before), -1)
        past = (value.plus(known, -1) for known in (box, rest))
        if not any(not by.terms and by.constant >= 0 for by in past):
            return False
    return True
