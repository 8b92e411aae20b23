"""Early exit: blocks of a grid that would write nothing, as those past the end of a sequence."""

from collections.abc import Iterator
from math import prod

from tile2cu.analysis.accesses import buffers_written, loaded, variables
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.control import places
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.prelude import prelude
from tile2cu.analysis.producer_loads import why_no_prelude
from tile2cu.analysis.uniformity import uniformity_of
from tile2cu.analysis.uses import all_expressions, roots_written
from tile2cu.core.decisions import EARLY_EXIT, PERSISTENT
from tile2cu.core.expr import Expr, Load, Role, Var, negated, walk
from tile2cu.core.program import (
    Assign,
    Copy,
    Declare,
    Fill,
    Gemm,
    If,
    Launch,
    Let,
    Loop,
    Parallel,
    Reduce,
    Scope,
    Stmt,
    Store,
    While,
)
from tile2cu.core.schedule import EarlyExit
from tile2cu.passes.mask_after_gemm import conjuncts, some_fails
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

# Statements without effects other than their writes.
QUIET = Assign | Copy | Declare | Fill | Gemm | If | Let | Loop | Parallel | Reduce | Store | While
_PAST_THE_END = """
length = T.cast(A[m, 0], "int32")
for i, j in T.Parallel(64, 64):
    if bx * 64 + i < length:
        X[bx * 64 + i, j] = A[bx * 64 + i, j]
"""


@rule(
    "schedule.grid.empty-tiles",
    phase=Phase.SELECT,
    on=Launch,
    reads=(PERSISTENT,),
    writes=(EARLY_EXIT,),
    source="measured on an H200: benchmarks/RESULTS.md, attention of packed sequences",
    examples=(Example(_PAST_THE_END, "launch", "early_exit", "exits immediately"),),
)
def early_exit(launch: Launch, context: Context) -> Iterator[Decision]:
    """A block that would write nothing exits immediately, where values in memory (as sequence lengths) decide that.

    The condition follows from those around all stores. Persistent blocks skip such tiles.

    Gives: the condition, and the statements that compute its values.
    """
    quiet = all(isinstance(stmt, QUIET) for stmt in context.statements)
    if not quiet or prod(launch.cluster) > 1 or context.facts.get(launch, PERSISTENT) is not None:
        return
    found = early_exit_of(launch, launch.body, context)
    if found is not None:
        yield launch, EARLY_EXIT, found


def early_exit_of(launch: Launch, above: tuple[Stmt, ...], context: Context) -> EarlyExit | None:
    """The condition, on values that statements `above` read, for a block to write nothing; None where unknown.

    Those statements can run on their own, and all threads see the same values.
    """
    known = frozenset(stmt.var for stmt in above if isinstance(stmt, Let)).union(launch.blocks)
    idle = early_exit_where(launch, known, context.bounds)
    if idle is None or not uniformity_of(launch).holds(idle) or why_no_prelude((idle,), above):
        return None
    before = prelude((idle,), above)
    values = [*all_expressions(before)]
    read, written = loaded(*values), roots_written(launch.body)
    changed = any(is_among(buffer, written) for buffer in read)
    return EarlyExit(before, idle) if read and not changed else None


def early_exit_where(launch: Launch, known: frozenset[Var], bounds: Bounds) -> Expr | None:
    """A condition on `known` values under which a block writes no tensor; None where none is found.

    A comparison around one store fails for all elements of the loop, and then those around all other stores do, too.
    """
    written = list(_never(launch, bounds))
    for idle in (condition for each in written for condition in each):
        invariant = not any(isinstance(part, Load) for part in walk(idle))
        invariant = invariant and all(var in known and var.role is not Role.MUTABLE for var in variables(idle))
        if invariant and all(any(bounds.implies(idle, never) for never in each) for each in written):
            return idle
    return None


def _never(launch: Launch, bounds: Bounds) -> Iterator[list[Expr]]:
    """For each statement that writes a tensor, conditions under which it never runs."""
    for place in places(launch.body):
        writes = any(buffer.scope is Scope.GLOBAL for buffer in buffers_written(place.stmt))
        if not writes or isinstance(place.stmt, If | Loop | Parallel):
            continue
        conditions = (condition if held else negated(condition) for condition, held in place.conditions)
        parts = (part for condition in conditions for part in conjuncts(condition))
        some = (some_fails(negated(part), place.elements, bounds) for part in parts)
        yield [negated(found) for found in some if found is not None]
