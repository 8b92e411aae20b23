"""What the statements of an elementwise loop read, for styles that print them one by one."""

from collections.abc import Iterator

from tile2cu.core.expr import Binary, Const, Expr, Load, Var, binary, int_const, walk
from tile2cu.plan import ops, structure
from tile2cu.plan.scalar_ops import Assign, Atomic, Declare, Store


def by_each_holder(statement: structure.Statement) -> Iterator[structure.Statement]:
    """A statement, or those that one of the threads is to run that hold the same element."""
    if isinstance(statement.op, structure.ByOneHolder):
        yield from statement.op.body
    else:
        yield statement


def own_expressions(op: ops.Op) -> Iterator[Expr]:
    """The expressions of an operation, without those of the blocks in it."""
    match op:
        case Store() | Atomic():
            yield op.value
            yield from op.indices
        case structure.Let() | Assign():
            yield op.value
        case Declare():
            yield op.init
        case structure.If():
            yield op.condition


def printed_expressions(body: tuple[structure.Statement, ...]) -> Iterator[Expr]:
    """Those that are printed: an element that is stored to counts as a load of it."""
    for op in (each.op for each in body):
        if isinstance(op, Store | Atomic):
            yield op.value
            yield Load(op.buffer.dtype, op.buffer, op.indices)
            continue
        yield from own_expressions(op)
        match op:
            case structure.If(then=then, orelse=orelse):
                for block in (then, orelse):
                    yield from printed_expressions(tuple(each for part in block for each in part.statements))


def without(expr: Expr, var: Var) -> Expr | None:
    """What is added to a variable; None where the expression is no sum with it."""
    if expr == var:
        return int_const(0)
    if not isinstance(expr, Binary) or expr.op not in ("+", "-"):
        return None
    in_left = var in walk(expr.lhs)
    if expr.op == "-" and not in_left:
        return None
    rest = without(expr.lhs if in_left else expr.rhs, var)
    other = expr.rhs if in_left else expr.lhs
    if rest is None:
        return None
    if isinstance(rest, Const) and rest.value == 0 and expr.op == "+":
        return other
    return binary(expr.op, rest, other)
