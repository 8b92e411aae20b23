"""Blocks of a grid that would write nothing, as those past the end of a sequence."""

from collections.abc import Iterator, Mapping

from tile2cu.core.accesses import buffers_written, variables
from tile2cu.core.bounds import Bounds
from tile2cu.core.expr import Expr, Load, Var, negated, walk
from tile2cu.core.program import If, Launch, Loop, Parallel, Scope, Stmt
from tile2cu.rules.rewrite.mask import conjuncts, some_fails


def idle_where(launch: Launch, known: frozenset[Var], bounds: Bounds) -> Expr | None:
    """A condition on `known` values under which no tensor is written by a block; None where none is found.

    It is that a comparison around a store fails for all elements of the loop, and then those around all others do, too.
    """
    written = [list(found) for found in _never(launch.body, (), {}, bounds)]
    for idle in (condition for each in written for condition in each):
        stays = not any(isinstance(part, Load) for part in walk(idle)) and variables(idle) <= known
        if stays and all(any(bounds.implies(idle, never) for never in each) for each in written):
            return idle
    return None


def _never(
    body: tuple[Stmt, ...], conditions: tuple[Expr, ...], extents: Mapping[Var, Expr], bounds: Bounds
) -> Iterator[Iterator[Expr]]:
    """Of each statement that writes a tensor, conditions under which it never comes to that."""
    for stmt in body:
        match stmt:
            case If():
                yield from _never(stmt.then, (*conditions, *conjuncts(stmt.condition)), extents, bounds)
                yield from _never(stmt.orelse, (*conditions, *conjuncts(negated(stmt.condition))), extents, bounds)
            case Parallel():
                inside = dict(zip(stmt.vars, stmt.extents, strict=True))
                yield from _never(stmt.body, conditions, {**extents, **inside}, bounds)
            case Loop():
                yield from _never(stmt.body, conditions, extents, bounds)
            case _ if any(buffer.scope is Scope.GLOBAL for buffer in buffers_written(stmt)):
                some_holds = (some_fails(negated(condition), extents, bounds) for condition in conditions)
                yield (negated(some) for some in some_holds if some is not None)
            case _:
                pass
