"""Updates of a reducer in a loop: each thread keeps its elements' values, and a reduction combines them afterwards."""

from collections.abc import Callable, Iterator
from typing import TypeGuard

from msgspec.structs import replace

from tile2cu.analysis.control import declared_in
from tile2cu.analysis.prelude import around
from tile2cu.analysis.uses import statements
from tile2cu.core.dtype import FLOAT32, INT32, DType
from tile2cu.core.expr import Binary, Call, Const, Expr, Load, int_const, static_value, walk
from tile2cu.core.program import (
    Atomic,
    Buffer,
    Copy,
    Parallel,
    Reduce,
    Reduction,
    Scope,
    Stmt,
    Store,
)
from tile2cu.core.rebuild import Body, under_comments, with_instead
from tile2cu.passes.tiles import whole

_NARROWEST_ATOMIC = 16  # bits


def reduced_after(
    op: Parallel,
    tile: Callable[[Buffer], Buffer],
    shared: Callable[[Buffer], Buffer],
    named: Callable[[str], str],
) -> Body | None:
    """The loop, then the reductions that replace its updates; None where it has none.

    `tile` makes a fragment, `shared` a shared tile, for iterations that compute the index of the element they update;
    `named` gives a name like the wished one that nothing has.
    """
    updates = [stmt for stmt in statements(op.body, Store, Atomic) if _is_update(stmt)]
    if not updates:
        return None
    scattered = [update for update in updates if _is_computed(op, update.indices)]
    if scattered:
        return _in_shared(op, scattered, shared)
    body: Body = op.body
    first: list[Stmt] = []
    after: list[Stmt] = []
    for update in updates:
        target = update.buffer
        kind = (update.kind if isinstance(update, Atomic) else None) or Reduction.SUM
        like = replace(target, name=f"{target.name}_values", shape=op.extents, reducer=None)
        values = tile(like)
        own = not around(op.body, update)
        if not own:  # an element may be updated not at all, or several times
            neutral = Const(target.dtype, kind.identity(target.dtype), weak=False)
            first.append(Store(buffer=values, indices=op.vars, value=neutral, span=update.span))
        kept = Load(target.dtype, values, op.vars)
        value = update.value if own else _combined(kind, kept, update.value)
        store = Store(buffer=values, indices=op.vars, value=value, span=update.span)
        body = _with(body, update, store)
        after += _reductions(op, kind, values, target, update.indices, tile, named)
    loop = replace(op, body=(*first, *body))
    return (loop, *(replace(stmt, comments=(), trailing="") for stmt in after))


def _is_update(stmt: Stmt) -> TypeGuard[Store | Atomic]:
    match stmt:
        case Store():
            return stmt.buffer.reducer is not None and stmt.op == "+"
        case Atomic():
            return stmt.buffer.scope is Scope.FRAGMENT and stmt.kind is not None
        case _:
            return False


def _with(body: Body, update: Stmt, by: Stmt) -> Body:
    """The body with `by` in the place of an update."""
    instead = under_comments(update, (by,))
    return with_instead(body, {id(update): instead})


def _combined(kind: Reduction, a: Expr, b: Expr) -> Expr:
    if kind.operator:
        return Binary(a.dtype, kind.operator, a, b)
    return Call(a.dtype, kind.value, (a, b))


def _reductions(
    op: Parallel,
    kind: Reduction,
    values: Buffer,
    target: Buffer,
    indices: tuple[Expr, ...],
    tile: Callable[[Buffer], Buffer],
    named: Callable[[str], str],
) -> Iterator[Stmt]:
    """One dimension after the other that the reducer's indices do not have, the last of them into the reducer.

    Where the indices do not run over all of it in the loop's order, the result is added to the elements that they name.
    """
    gone = [dim for dim, variable in enumerate(op.vars) if variable not in indices]
    left = [dim for dim in range(len(op.vars)) if dim not in gone]
    runs_over = indices == tuple(op.vars[dim] for dim in left) and target.static_shape == tuple(
        static_value(op.extents[dim]) for dim in left
    )
    source = values
    for dim in reversed(gone):
        shape = tuple(extent for at, extent in enumerate(source.shape) if at != dim)
        last = dim == gone[0] and runs_over
        result = target if last else tile(replace(values, shape=shape or (int_const(1),)))
        yield Reduce(kind=kind, src=source, dst=result, dim=dim, clear=not last, span=op.span)
        source = result
    if not gone or not runs_over:
        yield _into_part(op, kind, source, target, indices, named)


def _is_computed(op: Parallel, indices: tuple[Expr, ...]) -> bool:
    """Whether an index is no variable of the loop, and yet differs between iterations."""
    own = declared_in(op.body) | set(op.vars)
    return any(index not in op.vars and own.intersection(walk(index)) for index in indices)


_SCATTERED = "iterations compute which element of `{}` they update: by atomics on shared memory"


def _in_shared(op: Parallel, updates: list[Store | Atomic], shared: Callable[[Buffer], Buffer]) -> Body:
    """The loop with updates of a shared tile in place of those of a fragment, which is copied there and back."""
    before: list[Stmt] = []
    after: list[Stmt] = []
    body: Body = op.body
    for target in dict.fromkeys(update.buffer for update in updates):
        there = shared(replace(target, dtype=_updated_in(target.dtype), reducer=None))
        reason = _SCATTERED.format(target.name)
        before.append(Copy(src=whole(target, op), dst=whole(there, op), span=op.span, reason=reason))
        after.append(Copy(src=whole(there, op), dst=whole(target, op), span=op.span, reason=reason))
        for update in updates:
            if update.buffer is target:
                kind = (update.kind if isinstance(update, Atomic) else None) or Reduction.SUM
                own = update.value if there.dtype == target.dtype else Call(target.dtype, "cast", (update.value,))
                by = Atomic(kind=kind, buffer=there, indices=update.indices, value=own, span=update.span)
                body = _with(body, update, by)
    return under_comments(op, (*before, replace(op, body=body), *after))


def _updated_in(dtype: DType) -> DType:
    """The type of a shared tile that atomics update in the place of one of this type: none update single bytes."""
    if dtype.bits >= _NARROWEST_ATOMIC:
        return dtype
    return FLOAT32 if dtype.is_float else INT32


def _into_part(
    op: Parallel,
    kind: Reduction,
    source: Buffer,
    target: Buffer,
    indices: tuple[Expr, ...],
    named: Callable[[str], str],
) -> Parallel:
    """A loop over the remaining variables that combines each value with the reducer's."""
    kept = tuple(variable for variable in op.vars if variable in indices)
    variables = kept or (replace(op.vars[0], name=named(f"{op.vars[0].name}_all")),)
    old, new = Load(target.dtype, target, indices), Load(target.dtype, source, variables)
    store = Store(buffer=target, indices=indices, value=_combined(kind, old, new), span=op.span)
    return replace(op, vars=variables, extents=source.shape, body=(store,), comments=(), trailing="")
