"""Divisions of many elements by the same number."""

from math import frexp

from msgspec.structs import replace

from tile2cu.analysis.control import declared_in
from tile2cu.core.dtype import FLOAT32
from tile2cu.core.expr import Binary, Call, Expr, Load, static_value, walk
from tile2cu.core.program import Launch, Parallel, Stmt, Store
from tile2cu.core.rebuild import Body, in_body, with_expressions


def divisions_by_shared_numbers(launch: Launch) -> Launch:
    """The launch with `tl::divide` where a loop divides elements by a value that many of them share, as a row's sum.

    It rounds as `/` does. The compiler takes the reciprocal of the divisor once for all elements of a thread that share
    it, which leaves a multiplication and two corrections per element. Measured with attention on an H200, whose last
    step divides 64 elements per thread by two sums: 2 to 14 % of the kernel; where scores are capped, cap * tanh(s /
    cap), 31 %, as `/` branches for each element. [benchmarks/RESULTS.md]
    """

    def change(body: Body, position: int) -> Body | None:
        loop = body[position]
        return (_divided(loop),) if isinstance(loop, Parallel) else None

    return replace(launch, body=in_body(launch.body, change))


def _divided(loop: Parallel) -> Stmt:
    own = {loop.vars[-1], *declared_in(loop.body)}

    def is_shared(divisor: Expr) -> bool:
        """Whether it is the same for neighbours in a row; a power of two is none, by which compilers multiply."""
        known = static_value(divisor)
        if known is not None:
            return abs(frexp(known)[0]) != 0.5
        return divisor.dtype == FLOAT32 and own.isdisjoint(walk(divisor))

    def in_full(stmt: Stmt) -> Stmt:
        """`x /= y` as `x = x / y`, where y is shared."""
        if not isinstance(stmt, Store) or stmt.op != "/" or stmt.buffer.dtype != FLOAT32 or not is_shared(stmt.value):
            return stmt
        element = Load(FLOAT32, stmt.buffer, stmt.indices)
        return replace(stmt, op="", value=Binary(FLOAT32, "/", element, stmt.value))

    def quotient(expr: Expr) -> Expr | None:
        if isinstance(expr, Binary) and expr.op == "/" and expr.lhs.dtype == FLOAT32 and is_shared(expr.rhs):
            return Call(FLOAT32, "divide", (expr.lhs, expr.rhs))
        return None

    return with_expressions(replace(loop, body=tuple(map(in_full, loop.body))), quotient)
