"""Whether all threads of a block reach a statement."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.prelude import around
from tile2cu.analysis.uniformity import BLOCK_MEMORY, uniformity_of
from tile2cu.core.expr import Expr
from tile2cu.core.program import If, Launch, Loop, Stmt, While


def reached_by_all(launch: Launch, stmt: Stmt) -> bool:
    """Whether all threads of a block reach a statement equally often, for any values that other blocks write."""
    alone = uniformity_of(launch, BLOCK_MEMORY)
    return all(alone.holds(expr) for _, asked in decisions(launch, stmt) for expr in asked)


def decisions(launch: Launch, stmt: Stmt) -> Iterator[tuple[If | While | Loop, tuple[Expr, ...]]]:
    """What decides, from the outermost on, whether a thread reaches a statement: where, and by which expressions."""
    alone = uniformity_of(launch, BLOCK_MEMORY)
    again = (stmt,) if isinstance(stmt, While) else ()  # its condition is evaluated behind each iteration
    for outer in (*around(launch.body, stmt), *again):
        if isinstance(outer, If | While | Loop):
            yield outer, expressions(outer)
        if isinstance(outer, While | Loop):
            yield from ((branch, (branch.condition,)) for branch in alone.diverging_exits(outer.body))
