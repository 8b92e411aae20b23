"""Values that depend on a loop's variables."""

from collections.abc import Collection

from tile2cu.core.expr import Expr, Var, walk
from tile2cu.core.program import Assign, Declare, If, Let, Loop, Parallel, Stmt, While


def dependent(op: Parallel, variables: Collection[Var]) -> frozenset[Var]:
    """The variables, and the names in an elementwise loop whose values, or whose assignment, depend on them."""
    found, known = frozenset(variables), -1
    while known != len(found):  # a name may get the value that a later statement gives another one
        known = len(found)
        found |= _given(op.body, found, by_condition=False)
    return found


def _given(body: tuple[Stmt, ...], found: frozenset[Var], *, by_condition: bool) -> frozenset[Var]:
    """The names whose values depend on found ones; all that are assigned under a condition that does."""
    for stmt in body:
        match stmt:
            case Let(var=var, value=value) | Declare(var=var, init=value) | Assign(var=var, value=value):
                found |= {var} if by_condition or mentions(value, found) else set()
            case If():
                inside = by_condition or mentions(stmt.condition, found)
                found |= _given((*stmt.then, *stmt.orelse), found, by_condition=inside)
            case While():
                found |= _given(stmt.body, found, by_condition=by_condition or mentions(stmt.condition, found))
            case Loop():
                inside = by_condition or mentions(stmt.start, found) or mentions(stmt.stop, found)
                found |= {stmt.var} if inside else set()
                found |= _given(stmt.body, found, by_condition=inside)
            case _:
                pass
    return found


def mentions(expr: Expr | None, found: Collection[Var]) -> bool:
    """Whether one of these variables occurs in an expression."""
    return expr is not None and any(part in found for part in walk(expr) if isinstance(part, Var))
