"""Updates by which several iterations of T.Parallel may reach one element of a fragment: they are combined."""

from collections.abc import Mapping

from tile2cu.analysis.accesses import element_accesses
from tile2cu.core.expr import Binary, Call, Expr, Load, Unary, Var, binary, static_value, substitute, walk
from tile2cu.core.program import Atomic, Let, Reduction, Scope, Stmt, Store, walk_stmts
from tile2cu.core.rebuild import Body, each_replaced, with_bodies

_LOSSY = ("//", "%", "&", ">>")  # of different numbers they may give the same
_KINDS = {"max": Reduction.MAX, "min": Reduction.MIN}


def combining(body: tuple[Stmt, ...], variables: Mapping[Var, Expr]) -> tuple[Stmt, ...]:
    """The body of T.Parallel where `x[i // 8] = T.max(x[i // 8], v)`, `+= v` and the like are atomic on a fragment.

    All iterations run in parallel: what one read before another one wrote would be lost. So it is with `x[i]` in
    a loop over i and j. `variables`: those of the loop, and their extents.
    """
    lets: dict[Expr, Expr] = {}
    for stmt in walk_stmts(body):
        if isinstance(stmt, Let):
            lets[stmt.var] = substitute(stmt.value, lets)
    turns = frozenset(var for var, extent in variables.items() if static_value(extent) != 1)

    def combined(stmt: Stmt) -> Body:
        if isinstance(stmt, Store) and stmt.buffer.scope is Scope.FRAGMENT and _collides(stmt, turns, lets):
            return (_atomic(stmt, body) or stmt,)
        return (with_bodies(stmt, lambda below: each_replaced(below, combined)),)

    return each_replaced(body, combined)


def _collides(store: Store, variables: frozenset[Var], lets: Mapping[Expr, Expr]) -> bool:
    """Whether several iterations may share an element: an index is computed so, or none names one of the variables."""
    parts = [part for index in store.indices for part in walk(substitute(index, lets))]
    return not variables <= set(parts) or any(
        isinstance(part, Binary) and part.op in _LOSSY and not variables.isdisjoint(walk(part)) for part in parts
    )


def _atomic(store: Store, whole: tuple[Stmt, ...]) -> Atomic | None:
    """The update as one that nothing comes between; None where it is none, or the loop looks at the tile elsewhere."""
    old = Load(store.buffer.dtype, store.buffer, store.indices)
    kind, value = _update(store, old)
    uses = sum(access.buffer is store.buffer for access in element_accesses(whole))
    if kind is None or uses != 2 or store.buffer in {part.buffer for part in walk(value) if isinstance(part, Load)}:
        return None
    return Atomic(
        kind=kind,
        buffer=store.buffer,
        indices=store.indices,
        value=value,
        span=store.span,
        comments=store.comments,
        trailing=store.trailing,
    )


def _update(store: Store, old: Load) -> tuple[Reduction | None, Expr]:
    """How a store combines an element with a value, and the value."""
    if store.op in ("+", "-"):
        return Reduction.SUM, store.value if store.op == "+" else Unary(store.value.dtype, "-", store.value)
    match store.value:
        case Call(function="max" | "min", args=(lhs, rhs)) if not store.op and old in (lhs, rhs):
            return _KINDS[store.value.function], rhs if lhs == old else lhs
    rest = None if store.op else _without(store.value, old)
    return (None, store.value) if rest is None else (Reduction.SUM, rest)


def _without(value: Expr, old: Load) -> Expr | None:
    """What a sum adds to an element, first or last in it; None where it is none of it."""
    match value:
        case Binary(op="+", lhs=lhs, rhs=rhs) if old in (lhs, rhs):
            return rhs if lhs == old else lhs
        case Binary(op="+", lhs=lhs, rhs=rhs) if (rest := _without(lhs, old)) is not None:
            return binary("+", rest, rhs)
        case _:
            return None
