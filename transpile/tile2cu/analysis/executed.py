"""What every block executes, as far as sizes alone say: the statements outside of branches, in loops that count."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import divisors, expressions
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.control import Place, places
from tile2cu.analysis.trips import is_positive
from tile2cu.core.expr import Call, Expr, Load, Role, Var, binary, static_value, variables_in, walk
from tile2cu.core.memo import kept
from tile2cu.core.program import Copy, Launch, Loop, Parallel, Stmt
from tile2cu.core.record import Record


class Executed(Record, frozen=True):
    """A statement that each block executes where some numbers of sizes are positive: of blocks, and of iterations.

    `counts` has those of iterations that may be 0 although the grid has blocks.
    """

    stmt: Stmt
    counts: tuple[Expr, ...]


@kept
def executed(launch: Launch, bounds: Bounds) -> tuple[Executed, ...]:
    """The statements that every block of a launch executes."""
    return tuple(
        Executed(place.stmt, counts)
        for place in places((*launch.prelude, *launch.body))
        if place.always_runs and (counts := _counts(place, launch, bounds)) is not None
        if not (isinstance(place.stmt, Copy) and place.stmt.when is not None)
    )


def _counts(place: Place, launch: Launch, bounds: Bounds) -> tuple[Expr, ...] | None:
    """The trip counts around a statement that may be 0 in a block; None where more than sizes decides one."""
    found: list[Expr] = []
    for outer in place.around:
        for count in _numbers(outer, bounds):
            if count is None or not is_of_sizes(count):
                return None
            if not is_positive(count, (*launch.grid, *found), bounds):
                found.append(count)
    return tuple(found)


def _numbers(outer: Stmt, bounds: Bounds) -> Iterator[Expr | None]:
    """Numbers that are positive where a statement has iterations; None for a loop whose direction no one knows."""
    match outer:
        case Loop(start=start, stop=stop):
            step = static_value(outer.step) or 0
            first, end = (start, stop) if step > 0 else (stop, start)
            distance = end if static_value(first) == 0 else bounds.linear(binary("-", end, first)).expression()
            yield bounds.expanded(distance) if step else None
        case Parallel():
            yield from map(bounds.expanded, outer.extents)
        case _:
            pass


def divisors_executed(launch: Launch, bounds: Bounds) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """What every block divides by that may be 0 although some numbers, of blocks and iterations, are positive.

    Those that a choice decides are left out: no head could state them.
    """
    for each in executed(launch, bounds):
        counts = tuple(count for count in (*launch.grid, *each.counts) if static_value(count) is None)
        for divisor in (by for expr in expressions(each.stmt) for by in divisors(bounds.expanded(expr))):
            known = divisor.dtype.is_int and is_of_launcher(divisor)
            if known and not any(map(_chooses, (divisor, *counts))) and not is_positive(divisor, counts, bounds):
                yield divisor, counts


def _chooses(expr: Expr) -> bool:
    return any(isinstance(part, Call) and part.function == "if_then_else" for part in walk(expr))


def is_of_sizes(expr: Expr) -> bool:
    """Whether the launcher knows an expression from sizes alone."""
    return is_of_launcher(expr) and all(var.role is Role.SIZE for var in variables_in(expr))


def is_of_launcher(expr: Expr) -> bool:
    """Whether the launcher knows an expression: sizes and scalar arguments, and no memory, decide it."""
    known = (Role.SIZE, Role.SCALAR)
    return not any(isinstance(part, Load) or (isinstance(part, Var) and part.role not in known) for part in walk(expr))
