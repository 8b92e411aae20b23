"""A statement in which threads read elements that others write: all have read before any writes.

`S[tx] = S[tx + 1]` is `value = S[tx + 1]`, a barrier, `S[tx] = value`.
"""

from msgspec.structs import replace

from tile2cu.analysis.accesses import loaded, value_after
from tile2cu.analysis.uses import names_of, unused
from tile2cu.core.expr import Const, Expr, Role, Var
from tile2cu.core.program import Atomic, Launch, Let, Store
from tile2cu.core.rebuild import under_comments, with_instead


def reads_first(launch: Launch, stmt: Store | Atomic) -> Launch:
    """The launch with the values that a statement reads named before it."""
    taken = names_of(launch)
    lets: list[Let] = []

    def named(expr: Expr, wish: str) -> Expr:
        if isinstance(expr, Const) or not loaded(expr):
            return expr
        var = Var(expr.dtype, unused(wish, taken), Role.LET)
        taken.add(var.name)
        lets.append(Let(var=var, value=expr, span=stmt.span))
        return var

    indices = tuple(named(index, "index") for index in stmt.indices)
    value = named(value_after(stmt) if isinstance(stmt, Store) else stmt.value, "value")
    changed = replace(stmt, indices=indices, value=value)
    written = replace(changed, op="") if isinstance(changed, Store) else changed
    return replace(launch, body=with_instead(launch.body, {id(stmt): under_comments(stmt, (*lets, written))}))
