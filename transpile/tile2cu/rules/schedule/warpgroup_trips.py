"""Hopper: iterations that a warpgroup skips, as they change none of its rows, or none that is stored."""

from collections.abc import Mapping, Sequence
from math import inf

from tile2cu.analysis.accesses import buffers_written, element_accesses, viewed, with_values
from tile2cu.analysis.control import only_arm
from tile2cu.analysis.lifetimes import begins_by_writing
from tile2cu.analysis.linear import Linear
from tile2cu.analysis.prelude import before, behind
from tile2cu.analysis.uniformity import uniformity_of
from tile2cu.analysis.uses import is_at_top, statements, using
from tile2cu.core.decisions import LAYOUT, WARPS
from tile2cu.core.dtype import DType
from tile2cu.core.expr import (
    Binary,
    Call,
    Const,
    Expr,
    Load,
    Role,
    Var,
    binary,
    int_const,
    negated,
    static_value,
    substitute,
    walk,
)
from tile2cu.core.layout import Warps
from tile2cu.core.program import (
    Buffer,
    Copy,
    Fill,
    Gemm,
    If,
    Let,
    Loop,
    Parallel,
    Reduce,
    Reduction,
    Scope,
    Stmt,
    Store,
)
from tile2cu.core.schedule import MmaOverlap, Pipeline, WarpgroupTripCount
from tile2cu.rules.engine import Context
from tile2cu.rules.launch.grid import equal_trip_counts
from tile2cu.rules.mma.hopper import warpgroups

_MMAS = 2  # of the scores, and of the values that they weight
_ROWS = 64  # of a warpgroup in a GEMM
_EXPONENTIALS = ("exp", "exp2")
# The known values of a tile's elements; other values are those of before the iteration, or terms of them.
_ZERO, _ONE, _LEAST = "0", "1", "-inf"


def own_trips(overlap: MmaOverlap, op: Loop, pipeline: Pipeline, context: Context) -> WarpgroupTripCount | None:
    """The trip count of each warpgroup in a loop with software-pipelined MMAs and a causal mask, where they differ.

    Rows may see more columns than their number, as queries after cached keys do, or fewer.
    """
    if len(overlap.mmas) > _MMAS or static_value(op.start) != 0 or equal_trip_counts(op, context):
        return None
    if not is_at_top(op, context.launch):
        return None
    after = behind(context.launch.body, op)
    rows = _stored_rows(after)
    if rows is None or not _one_warpgroup_a_row(overlap, context):
        return None
    own = _staircase(overlap, op, *rows, context)
    if own is None or not _are_by_rows((*pipeline.body, *after), context):
        return None
    some_end_sooner = _some_end_sooner(overlap, own, context)
    return own if some_end_sooner and _masked_changes_nothing(pipeline.body, overlap, after, context) else None


def _one_warpgroup_a_row(overlap: MmaOverlap, context: Context) -> bool:
    """Whether there are several warpgroups, each with 64 rows of both MMAs that no other has."""
    groups = warpgroups(context.launch)
    sums = [mma.c.buffer for mma in overlap.mmas]
    shared_out = all(context.facts[mma, WARPS] == Warps(4 * groups, 1) for mma in overlap.mmas)
    return groups > 1 and shared_out and all(tile.static_shape[0] == _ROWS * groups for tile in sums)


def _some_end_sooner(overlap: MmaOverlap, own: WarpgroupTripCount, context: Context) -> bool:
    """Whether in some block the first warpgroup's trip count is smaller than the last one's.

    The number of columns that a row sees beyond its own counts where it is known; otherwise it is assumed to be whole
    tiles.
    """
    rows, width = overlap.first[0].c.buffer.static_shape[0], int(static_value(own.columns) or 1)
    more = _difference(own.last, own.start, context)
    columns = 0 if more.terms else more.constant
    firsts = (at * rows + columns for at in range(width))
    return any(-(-(first + _ROWS) // width) < -(-(first + rows) // width) for first in firsts)


def _stored_rows(after: tuple[Stmt, ...]) -> tuple[Expr, Expr] | None:
    """The start of the rows that all results are stored to, and their end; None where results differ in it."""
    positions: set[tuple[Expr, Expr]] = set()
    for stmt in after:
        if isinstance(stmt, Copy) and stmt.dst.buffer.scope is Scope.GLOBAL:
            if not stmt.src.whole or not stmt.dst.kept:
                return None
            dim = stmt.dst.kept[0]
            positions.add((stmt.dst.ranges[dim].start, stmt.dst.buffer.shape[dim]))
    return positions.pop() if len(positions) == 1 else None


def _staircase(overlap: MmaOverlap, loop: Loop, start: Expr, end: Expr, context: Context) -> WarpgroupTripCount | None:
    """The trip counts of a mask that leaves each row of the block one column more than the row above.

    None for other masks, and where the first row might be masked completely.
    """
    mask = _mask_of(overlap)
    if mask is None:
        return None
    (i, j), visible = mask
    if not isinstance(visible, Binary) or visible.op not in ("<=", ">="):
        return None
    row, column = (visible.lhs, visible.rhs) if visible.op == ">=" else (visible.rhs, visible.lhs)
    none = int_const(0)
    iteration, next_iteration = (substitute(column, {loop.var: int_const(at), j: none}) for at in (0, 1))
    columns = next_iteration if static_value(iteration) == 0 else binary("-", next_iteration, iteration)
    last = binary("-", substitute(row, {i: none}), iteration)
    width, steps = static_value(columns), _difference(row, column, context).plus(context.bounds.linear(last), -1)
    if not width or width < 0 or not _equal(steps, Linear({i: 1, j: -1, loop.var: -int(width)}, 0)):
        return None
    low, more = context.bounds.interval(last).low, _difference(last, start, context)
    may_see_none = low is None or low < 0
    if not _is_known_before(last, loop, context) or (may_see_none and not more.terms):
        return None
    return WarpgroupTripCount(start, end, last, columns, may_see_none)


def _difference(one: Expr, other: Expr, context: Context) -> Linear:
    return context.bounds.linear(one).plus(context.bounds.linear(other), -1)


def _equal(one: Linear, other: Linear) -> bool:
    difference = one.plus(other, -1)
    return not difference.terms and difference.constant == 0


def _is_known_before(value: Expr, loop: Loop, context: Context) -> bool:
    """Whether all threads of a block can compute a value before a top-level loop, and no iteration changes it."""
    body = context.launch.body
    above = before(body, loop)
    later = {loop.var, *(let.var for let in statements(body, Let) if let not in above)}
    parts = tuple(walk(value))
    named = not any(isinstance(part, Load) or (isinstance(part, Var) and part.role is Role.MUTABLE) for part in parts)
    return named and not later.intersection(parts) and uniformity_of(context.launch).holds(value)


def _mask_of(overlap: MmaOverlap) -> tuple[tuple[Var, ...], Expr] | None:
    """The mask of the first MMA: its variables, and the condition that keeps an element; others become -infinity."""
    branch = overlap.between[0] if overlap.between else None
    inside = only_arm(branch) if branch is not None else None
    if inside is None or len(inside) != 1 or not isinstance(loop := inside[0], Parallel):
        return None
    *names, store = loop.body
    if not isinstance(store, Store) or store.buffer is not overlap.first[0].c.buffer or not _are_names(names):
        return None
    choice, element = store.value, Load(store.buffer.dtype, store.buffer, loop.vars)
    if store.op or store.indices != loop.vars or not isinstance(choice, Call) or choice.function != "if_then_else":
        return None
    condition, yes, no = choice.args
    condition = with_values(condition, names)
    if yes == element and static_value(no) == -inf:
        return loop.vars, condition
    return (loop.vars, negated(condition)) if no == element and static_value(yes) == -inf else None


def _are_by_rows(body: tuple[Stmt, ...], context: Context) -> bool:
    return all(_is_by_rows(stmt, context) for stmt in body)


def _is_by_rows(stmt: Stmt, context: Context) -> bool:
    """Whether the rows of a fragment are independent, and threads of different warpgroups need not synchronise."""
    match stmt:
        case Gemm():
            return not stmt.transpose_a and stmt.a.whole and stmt.c.whole
        case Copy():
            tiles = stmt.src.whole and stmt.src.buffer.scope is not Scope.GLOBAL
            same = stmt.dst.whole and stmt.dst.buffer.static_shape == stmt.src.buffer.static_shape
            return tiles and (same or stmt.dst.buffer.scope is Scope.GLOBAL)
        case Reduce():
            return stmt.dim == 1 and stmt.src.rank == 2 and context.facts[stmt.src, LAYOUT].along(1).warps == 1
        case If():
            inside = only_arm(stmt)
            return inside is not None and _are_by_rows(inside, context)
        case Parallel():
            accesses = tuple(element_accesses((stmt,)))
            return all(
                access.buffer.scope is Scope.FRAGMENT and access.indices == stmt.vars[: len(access.indices)]
                for access in accesses
            )
        case _:
            return isinstance(stmt, Fill | Let)


def _masked_changes_nothing(
    body: tuple[Stmt, ...], overlap: MmaOverlap, after: tuple[Stmt, ...], context: Context
) -> bool:
    """Whether an iteration changes nothing that is live after it, if the mask makes each element minus infinity."""
    values: dict[Buffer, object] = {}
    for stmt in body:
        _follow(stmt, overlap, values)
    changed = [tile for tile, value in values.items() if value != tile]
    return not any(viewed(context.launch, tile) for tile in values) and all(
        tile.scope is not Scope.GLOBAL and _begins_anew(tile, body) and _begins_anew(tile, after) for tile in changed
    )


def _begins_anew(tile: Buffer, body: tuple[Stmt, ...]) -> bool:
    """Whether nothing in the body reads the tile before it is overwritten."""
    first = next(iter(using(body, tile)), None)
    return first is None or begins_by_writing(first, tile)


def _follow(stmt: Stmt, overlap: MmaOverlap, values: dict[Buffer, object]) -> None:
    """Records the values that a statement of a masked iteration gives to the fragments that it writes."""
    match stmt:
        case If() if stmt is overlap.between[0]:
            values[overlap.first[0].c.buffer] = _LEAST
        case Gemm() if stmt is overlap.second[0] and not stmt.clear and values.get(stmt.a.buffer) == _ZERO:
            values.setdefault(stmt.c.buffer, stmt.c.buffer)
        case Fill() if stmt.dst.whole:
            values[stmt.dst.buffer] = _value(stmt.value, values)
        case Copy() if stmt.dst.whole and stmt.src.whole:
            found = values.get(stmt.src.buffer, stmt.src.buffer)
            values[stmt.dst.buffer] = _as(stmt.dst.buffer.dtype, stmt.src.buffer.dtype, found)
        case Reduce(kind=Reduction.MAX) if values.get(stmt.src) == _LEAST:
            values[stmt.dst] = _LEAST if stmt.clear else values.get(stmt.dst, stmt.dst)
        case Reduce(kind=Reduction.SUM) if values.get(stmt.src) == _ZERO:
            values[stmt.dst] = _ZERO if stmt.clear else values.get(stmt.dst, stmt.dst)
        case Parallel(body=(*lets, Store() as store)) if _is_whole(stmt, store) and _are_names(lets):
            own = Load(store.buffer.dtype, store.buffer, store.indices)
            value = Binary(own.dtype, store.op, own, store.value) if store.op else store.value
            values[store.buffer] = _as(own.dtype, value.dtype, _value(with_values(value, lets), values))
        case _:
            values |= {tile: object() for tile in buffers_written(stmt)}


def _is_whole(loop: Parallel, store: Store) -> bool:
    extents = [static_value(extent) for extent in loop.extents]
    return store.indices == loop.vars and extents == list(store.buffer.static_shape)


def _are_names(body: Sequence[Stmt]) -> bool:
    return all(isinstance(stmt, Let) for stmt in body)


def _as(new: DType, old: DType, value: object) -> object:
    """The value of one type in a tile of another: 0, 1 and minus infinity are exact."""
    return value if new == old or value in (_ZERO, _ONE, _LEAST) else object()


def _value(expr: Expr, values: Mapping[Buffer, object]) -> object:
    """The value of an expression of elements in a masked iteration; all but the masked minus infinity are finite."""
    match expr:
        case Const(value=0):
            return _ZERO
        case Const(value=1):
            return _ONE
        case _ if static_value(expr) == -inf:
            return _LEAST
        case Load(buffer=Buffer() as tile):
            return values.get(tile, tile)
        case Binary():
            return _combined(expr, _value(expr.lhs, values), _value(expr.rhs, values))
        case Call(function="if_then_else"):
            yes, no = (_value(arg, values) for arg in expr.args[1:])
            return yes if yes == no else object()
        case Call(function="max", args=(one, other)):
            found = {_value(one, values), _value(other, values)} - {_LEAST}
            return found.pop() if len(found) == 1 else object() if found else _LEAST
        case Call() if expr.function in _EXPONENTIALS:
            exponent = _value(expr.args[0], values)
            return _ONE if exponent == _ZERO else _ZERO if exponent == _LEAST else object()
        case Call(function="cast"):
            return _as(expr.dtype, expr.args[0].dtype, _value(expr.args[0], values))
        case _:
            return expr


def _combined(expr: Binary, lhs: object, rhs: object) -> object:
    scale = max((static_value(part) or 0 for part in (expr.lhs, expr.rhs)), default=0)
    match expr.op:
        case "-" if lhs == rhs and lhs != _LEAST:
            return _ZERO
        case "-" if lhs == _LEAST and rhs != _LEAST:
            return _LEAST
        case "-" | "+" if rhs == _ZERO:
            return lhs
        case "+" if lhs == _ZERO:
            return rhs
        case "*" if _ONE in (lhs, rhs):
            return rhs if lhs == _ONE else lhs
        case "*" if _ZERO in (lhs, rhs) and _LEAST not in (lhs, rhs):
            return _ZERO
        case "*" if _LEAST in (lhs, rhs) and scale > 0:
            return _LEAST
        case _:
            return expr.op, lhs, rhs
