"""A statement in which threads read elements that others write: all have read before any writes.

`S[tx] = S[tx + 1]` is `value = S[tx + 1]`, a barrier, `S[tx] = value`. A copy to S from a place that S decides is one
from a place with a name.
"""

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_written, loaded, value_after
from tile2cu.analysis.uses import names_of, unused
from tile2cu.core.expr import Const, Expr, Load, Role, Var
from tile2cu.core.program import Atomic, Buffer, Launch, Let, Parallel, Stmt, Store
from tile2cu.core.rebuild import under_comments, with_expressions, with_instead


def reads_first(launch: Launch, stmt: Stmt) -> Launch:
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

    def own(expr: Expr) -> Expr | None:
        """The name of an element of what the statement writes."""
        changes = isinstance(expr, Load) and isinstance(expr.buffer, Buffer) and expr.buffer.memory in written
        return named(expr, "index") if changes else None

    written = {buffer.memory for buffer in buffers_written(stmt)}
    match stmt:
        case Store() | Atomic():
            indices = tuple(named(index, "index") for index in stmt.indices)
            value = named(value_after(stmt) if isinstance(stmt, Store) else stmt.value, "value")
            changed: Stmt = replace(stmt, indices=indices, value=value)
        case Parallel():
            changed = replace(stmt, extents=with_expressions(stmt.extents, own))
        case _:
            changed = with_expressions(stmt, own)
    changed = replace(changed, op="") if isinstance(changed, Store) else changed
    return replace(launch, body=with_instead(launch.body, {id(stmt): under_comments(stmt, (*lets, changed))}))
