"""Serial loops around or inside of an elementwise loop, over the elements of a tile: one loop over all of them."""

from msgspec.structs import replace

from tile2cu.analysis.accesses import element_accesses, parts_of
from tile2cu.analysis.dependence import is_parallel
from tile2cu.analysis.uses import statements
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Binary, Expr, Role, Var, binary, int_const, static_value, walk
from tile2cu.core.program import Atomic, Launch, Loop, LoopKind, Parallel, Scope, Stmt
from tile2cu.core.rebuild import Body, in_body, with_expressions

_MOST_DIMENSIONS = 3  # of a fragment
_ELEMENT = Var(INT32, "", Role.PARALLEL)  # in the place of an index, until none is left of the variables it is made of


def joined_loops(launch: Launch) -> Launch:
    """The launch in which `for i in T.serial(m): for j in T.Parallel(n):` over a fragment's elements is one loop.

    Row by row, only the threads that hold a row would be active, or the row would have to be broadcast. So is a loop
    over vectors of a fragment, `for j in T.Parallel(n): for v in T.vectorized(2):` with the index `j * 2 + v`, whose
    layout need not have them. The serial loop must carry no dependence: then the order of its iterations is irrelevant.
    """
    return replace(launch, body=in_body(launch.body, lambda body, position: _joined(body[position])))


def _joined(stmt: Stmt) -> Body | None:
    if isinstance(stmt, Parallel):
        return _elements_of_vectors(stmt)
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
    body = with_expressions(op.body, renamed.get)
    comments = (*stmt.comments, *op.comments)
    vars_, extents = (own, *op.vars), (stmt.stop, *op.extents)
    return (replace(op, vars=vars_, extents=extents, body=body, span=stmt.span, comments=comments),)


def _elements_of_vectors(op: Parallel) -> Body | None:
    """The loop over the elements of all vectors, where nothing but `j * n + v` depends on `j` or `v`.

    Atomic updates of a vector stay: one instruction does them.
    """
    if len(op.body) != 1 or op.laid_out or not isinstance(loop := op.body[0], Loop):
        return None
    if next(statements(loop.body, Atomic), None) is not None:
        return None
    count, var, inner = loop.count, op.vars[-1], loop.body
    if loop.kind is LoopKind.PIPELINED or count is None or count < 2 or not is_parallel(loop):
        return None

    def element(expr: Expr) -> Expr | None:
        pairs = ((expr.lhs, expr.rhs), (expr.rhs, expr.lhs)) if isinstance(expr, Binary) and expr.op == "+" else ()
        return _ELEMENT if any(_is_times(each, var, count) and v == loop.var for each, v in pairs) else None

    body = with_expressions(inner, element)
    if any(part in (var, loop.var) for part in parts_of(statements(body, Stmt))):
        return None
    if not any(
        _ELEMENT in access.indices for access in element_accesses(body) if access.buffer.scope is Scope.FRAGMENT
    ):
        return None
    named: dict[Expr, Expr] = {_ELEMENT: var}
    body = with_expressions(body, named.get)
    extents = (*op.extents[:-1], binary("*", op.extents[-1], int_const(count)))
    about = f"{var.name} is {var.name} * {count} + {loop.var.name}: the elements of all vectors"
    return (replace(op, extents=extents, body=body, comments=(*op.comments, *loop.comments, about)),)


def _is_times(expr: Expr, var: Var, number: int) -> bool:
    """Whether an expression is a variable times a number."""
    if not isinstance(expr, Binary) or expr.op != "*":
        return False
    return any(a == var and static_value(b) == number for a, b in ((expr.lhs, expr.rhs), (expr.rhs, expr.lhs)))


def _is_of_a_fragment(op: Parallel, row: Var) -> bool:
    """Whether the serial loop's variable indexes a fragment together with the inner loop's."""
    indices = (access.indices for access in element_accesses(op.body) if access.buffer.scope is Scope.FRAGMENT)
    return any(row in each and {*op.vars} & {*each} for each in indices)
