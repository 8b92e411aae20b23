"""Whether a loop has an iteration in every block that runs, and other integers that are positive there."""

from collections.abc import Iterable, Iterator

from tile2cu.analysis.bounds import Bounds
from tile2cu.core.expr import Binary, Call, Expr, Role, Var, children, static_value
from tile2cu.core.program import Launch, Loop


def runs_at_least_once(loop: Loop, launch: Launch, bounds: Bounds) -> bool:
    """Whether a loop that counts from 0 provably has an iteration: a grid without blocks is not launched."""
    return static_value(loop.start) == 0 and is_positive(loop.stop, launch.grid, bounds)


def is_positive(expr: Expr, given: Iterable[Expr], bounds: Bounds) -> bool:
    """Whether an integer is provably at least 1 where the integers `given` are."""
    sizes = {size for each in given for size in _positive_sizes(bounds.expanded(each))}
    return _is_positive(bounds.expanded(expr), sizes, bounds)


def _positive_sizes(expr: Expr) -> Iterator[Var]:
    """The sizes that are at least 1 where an integer is."""
    match expr:
        case Var(role=Role.SIZE):
            yield expr
        case Call(function="ceildiv", args=(value, by)) | Binary(op="//", lhs=value, rhs=by) if _at_least_1(by):
            yield from _positive_sizes(value)
        case Binary(op="*") | Call(function="min"):  # no size is negative
            for part in children(expr):
                yield from _positive_sizes(part)
        case _:
            pass


def _at_least_1(divisor: Expr) -> bool:
    return (static_value(divisor) or 0) > 0


def _is_positive(expr: Expr, positive: set[Var], bounds: Bounds) -> bool:
    """Whether an integer is at least 1 where some sizes are."""
    match expr:
        case Var() if expr in positive:
            return True
        case Call(function="ceildiv", args=(value, by)) if _at_least_1(by):
            return _is_positive(value, positive, bounds)
        case Call(function="min", args=args):
            return all(_is_positive(each, positive, bounds) for each in args)
        case Call(function="max", args=args):
            return any(_is_positive(each, positive, bounds) for each in args)
        case Binary(op="*", lhs=lhs, rhs=rhs):
            return _is_positive(lhs, positive, bounds) and _is_positive(rhs, positive, bounds)  # C++'s ints do not wrap
        case _:
            low = bounds.interval(expr).low
            return low is not None and low >= 1
