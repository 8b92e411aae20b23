"""Values that depend on a loop's variables."""

from collections.abc import Collection

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.control import places
from tile2cu.core.expr import Expr, Var, variables_in
from tile2cu.core.memo import kept
from tile2cu.core.program import Assign, Atomic, Declare, Let, Loop, Parallel


@kept
def dependent(op: Parallel, variables: Collection[Var]) -> frozenset[Var]:
    """The variables, and the names in an elementwise loop whose values, or whose assignment, depend on them."""
    found, known = frozenset(variables), -1
    while known != len(found):  # a name may get the value that a later statement gives another one
        known = len(found)
        for place in places(op.body):
            stmt = place.stmt
            deciding = (expr for each in (stmt, *place.around) for expr in expressions(each))
            if isinstance(stmt, Let | Declare | Assign | Loop) and any(mentions(expr, found) for expr in deciding):
                found |= {stmt.var}
            if isinstance(stmt, Atomic) and stmt.previous is not None:
                found |= {stmt.previous}  # each iteration's update finds another value
    return found


def mentions(expr: Expr | None, found: Collection[Var]) -> bool:
    """Whether one of these variables occurs in an expression."""
    return expr is not None and any(var in found for var in variables_in(expr))
