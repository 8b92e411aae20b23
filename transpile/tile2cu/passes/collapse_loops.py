"""Serial loops around one elementwise loop, as over the rows of a tile: their iterations become elements, too."""

from dataclasses import replace

from tile2cu.analysis.accesses import element_accesses
from tile2cu.analysis.dependence import is_parallel
from tile2cu.core.expr import Expr, Role, Var, walk
from tile2cu.core.program import Launch, Loop, LoopKind, Parallel, Scope, Stmt
from tile2cu.passes.rebuild import Body, in_body, with_expressions

_MOST_DIMENSIONS = 3  # of a fragment


def joined_loops(launch: Launch) -> Launch:
    """The launch in which `for i in T.serial(m): for j in T.Parallel(n):` over a fragment's elements is one loop.

    Row by row, only the threads that hold a row would be active, or the row would have to be broadcast. The serial loop
    must carry no dependence: then the order of its iterations is irrelevant.
    """
    return replace(launch, body=in_body(launch.body, lambda body, position: _joined(body[position])))


def _joined(stmt: Stmt) -> Body | None:
    if not isinstance(stmt, Loop) or stmt.kind not in (LoopKind.SERIAL, LoopKind.UNROLL) or len(stmt.body) != 1:
        return None
    (op,) = stmt.body
    if not isinstance(op, Parallel) or stmt.count is None or not _is_of_a_fragment(op, stmt.var):
        return None
    if len(op.vars) >= _MOST_DIMENSIONS:
        return None
    if not is_parallel(stmt) or any(stmt.var in walk(extent) for extent in op.extents):
        return None
    own = Var(stmt.var.dtype, stmt.var.name, Role.PARALLEL, stmt.var.number)
    renamed: dict[Expr, Expr] = {stmt.var: own}
    body = tuple(with_expressions(part, renamed.get) for part in op.body)
    comments = (*stmt.comments, *op.comments)
    vars_, extents = (own, *op.vars), (stmt.stop, *op.extents)
    return (replace(op, vars=vars_, extents=extents, body=body, span=stmt.span, comments=comments),)


def _is_of_a_fragment(op: Parallel, row: Var) -> bool:
    """Whether the serial loop's variable indexes a fragment together with the inner loop's."""
    indices = (access.indices for access in element_accesses(op.body) if access.buffer.scope is Scope.FRAGMENT)
    return any(row in each and {*op.vars} & {*each} for each in indices)
