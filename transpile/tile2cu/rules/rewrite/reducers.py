"""Updates of a reducer in a loop: each thread keeps its elements' values, and a reduction combines them afterwards."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeGuard

from tile2cu.core.expr import Binary, Call, Const, Expr, Load
from tile2cu.core.program import Atomic, Buffer, Parallel, Reduce, Reduction, Scope, Stmt, Store, walk_stmts
from tile2cu.rules.rewrite.replace import Body, in_body, under_comments


def reduced_after(op: Parallel, tile: Callable[[Buffer], Buffer]) -> Body | None:
    """The loop, then the reductions that stand for its updates; None where it has none. `tile` makes a fragment."""
    updates = [stmt for stmt in walk_stmts(op.body) if _is_update(stmt)]
    if not updates:
        return None
    body: Body = op.body
    first: list[Stmt] = []
    after: list[Stmt] = []
    for update in updates:
        target = update.buffer
        kind = (update.kind if isinstance(update, Atomic) else None) or Reduction.SUM
        like = replace(target, name=f"{target.name}_values", shape=op.extents, reducer=None)
        values = tile(like)
        own = any(stmt is update for stmt in op.body)
        if not own:  # an element may be updated never, or several times
            neutral = Const(target.dtype, kind.identity(target.dtype), weak=False)
            first.append(Store(buffer=values, indices=op.vars, value=neutral, span=update.span))
        kept = Load(target.dtype, values, op.vars)
        value = update.value if own else _combined(kind, kept, update.value)
        store = Store(buffer=values, indices=op.vars, value=value, span=update.span)
        body = _with(body, update, store)
        after += _reductions(op, kind, values, target, update.indices, tile)
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
    return in_body(body, lambda stmts, place: instead if stmts[place] is update else None)


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
) -> Iterator[Stmt]:
    """One dimension after the other that the reducer's indices do not name, the last of them into the reducer."""
    gone = [dim for dim, variable in enumerate(op.vars) if variable not in indices]
    source = values
    for dim in reversed(gone):
        shape = tuple(extent for at, extent in enumerate(source.shape) if at != dim)
        last = dim == gone[0]
        result = target if last else tile(replace(values, shape=shape))
        yield Reduce(kind=kind, src=source, dst=result, dim=dim, clear=not last, span=op.span)
        source = result
