"""Whether a loop has an iteration in every block that runs."""

from collections.abc import Iterator

from tile2cu.analysis.bounds import Bounds
from tile2cu.core.expr import Binary, Call, Expr, Role, Var, static_value
from tile2cu.core.program import Launch, Loop


def runs_at_least_once(loop: Loop, launch: Launch, bounds: Bounds) -> bool:
    """Whether a loop that counts from 0 provably has an iteration: a grid without blocks is not launched."""
    if static_value(loop.start) != 0:
        return False
    positive = {size for extent in launch.grid for size in _positive_sizes(bounds.expanded(extent))}
    return _is_positive(bounds.expanded(loop.stop), positive, bounds)


def _positive_sizes(extent: Expr) -> Iterator[Var]:
    """The sizes that are at least 1 where an extent of the grid is."""
    match extent:
        case Var(role=Role.SIZE):
            yield extent
        case Call(function="ceildiv", args=(value, by)) if (static_value(by) or 0) > 0:
            yield from _positive_sizes(value)
        case _:
            pass


def _is_positive(expr: Expr, positive: set[Var], bounds: Bounds) -> bool:
    """Whether an integer is at least 1 where some sizes are."""
    match expr:
        case Var() if expr in positive:
            return True
        case Call(function="ceildiv", args=(value, by)) if (static_value(by) or 0) > 0:
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
