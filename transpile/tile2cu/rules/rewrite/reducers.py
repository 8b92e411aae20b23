"""Updates of a reducer in a loop: each thread keeps its elements' values, and a reduction combines them afterwards."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from tile2cu.core.expr import Binary, Call, Const, Expr, Load
from tile2cu.core.program import Atomic, Buffer, If, Loop, Parallel, Reduce, Reduction, Scope, Stmt, Store, While
from tile2cu.rules.rewrite.replace import Body


def reduced_after(op: Parallel, tile: Callable[[Buffer], Buffer]) -> Body | None:
    """The loop, then the reductions that stand for its updates; None where it has none. `tile` makes a fragment."""
    updates = [update for stmt in op.body for update in _updates(stmt)]
    if not updates:
        return None
    body: Body = op.body
    first: list[Stmt] = []
    after: list[Stmt] = []
    for update in updates:
        target = update.buffer
        kind = update.kind if isinstance(update, Atomic) else Reduction.SUM
        like = replace(target, name=f"{target.name}_values", shape=op.extents, reducer=None)
        values = tile(like)
        own = any(stmt is update for stmt in op.body)
        if not own:  # an element may be updated never, or several times
            neutral = Const(target.dtype, kind.identity(target.dtype), weak=False)
            first.append(Store(buffer=values, indices=op.vars, value=neutral, span=update.span))
        kept = Load(target.dtype, values, op.vars)
        value = update.value if own else _combined(kind, kept, update.value)
        store = Store(buffer=values, indices=op.vars, value=value, span=update.span)
        body = tuple(_with(stmt, update, store) for stmt in body)
        after += _reductions(op, kind, values, target, update.indices, tile)
    loop = replace(op, body=(*first, *body))
    return (loop, *(replace(stmt, comments=(), trailing="") for stmt in after))


def _updates(stmt: Stmt) -> Iterator[Store | Atomic]:
    match stmt:
        case Store() if stmt.buffer.reducer is not None and stmt.op == "+":
            yield stmt
        case Atomic() if stmt.buffer.scope is Scope.FRAGMENT:
            yield stmt
        case If():
            for part in (*stmt.then, *stmt.orelse):
                yield from _updates(part)
        case Loop() | While():
            for part in stmt.body:
                yield from _updates(part)
        case _:
            pass


def _with(stmt: Stmt, update: Stmt, by: Stmt) -> Stmt:
    if stmt is update:
        return replace(by, comments=stmt.comments, trailing=stmt.trailing)
    match stmt:
        case If():
            then, orelse = (tuple(_with(part, update, by) for part in body) for body in (stmt.then, stmt.orelse))
            return replace(stmt, then=then, orelse=orelse)
        case Loop() | While():
            return replace(stmt, body=tuple(_with(part, update, by) for part in stmt.body))
        case _:
            return stmt


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
