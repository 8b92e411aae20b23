"""Branches on tensors that the kernel writes: the threads of a block agree, so that all of them meet at barriers.

`if Flag[0] > 0: ...` is `if any_of_block(Flag[0] > 0): ...`. Another block may write the element while the threads of
this one read it, each at its own time.
"""

from collections.abc import Iterator
from dataclasses import replace

from tile2cu.analysis.prelude import around
from tile2cu.analysis.uniformity import BLOCK_MEMORY, MEMORY, uniformity_of
from tile2cu.core.dtype import BOOL
from tile2cu.core.expr import Call, Expr
from tile2cu.core.program import If, Launch, Loop, Stmt, While
from tile2cu.core.rebuild import with_instead

_WHY = "All threads of the block go one way, also where another block writes meanwhile what they read"


def agreed_around(launch: Launch, stmt: Stmt) -> Launch | None:
    """The launch in which a block votes in the outermost branch or loop around a statement that needs it.

    None where none does, or where it is in code that some threads do not reach, or in a loop whose trip count is read.
    """
    at_one_time, alone = uniformity_of(launch, MEMORY), uniformity_of(launch, BLOCK_MEMORY)
    for branch, asked in _decisions(launch, stmt):
        if not all(map(alone.holds, asked)):
            votes = not isinstance(branch, Loop) and all(map(at_one_time.holds, asked))
            return _voting(launch, branch) if votes else None
    return None


def reached_by_all(launch: Launch, stmt: Stmt) -> bool:
    """Whether all threads of a block reach a statement equally often, whatever other blocks write meanwhile."""
    alone = uniformity_of(launch, BLOCK_MEMORY)
    return all(alone.holds(expr) for _, asked in _decisions(launch, stmt) for expr in asked)


def _decisions(launch: Launch, stmt: Stmt) -> Iterator[tuple[If | While | Loop, tuple[Expr, ...]]]:
    """What decides, from the outermost on, whether a thread reaches a statement: where, and by which expressions."""
    alone = uniformity_of(launch, BLOCK_MEMORY)
    again = (stmt,) if isinstance(stmt, While) else ()  # its condition is evaluated behind each iteration
    for outer in (*around(launch.body, stmt), *again):
        match outer:
            case If() | While():
                yield outer, (outer.condition,)
            case Loop():
                yield outer, (outer.start, outer.stop, outer.step)
        if isinstance(outer, While | Loop):
            exits = (alone.diverging_exit(each) for each in outer.body)
            yield from ((exit_, (exit_.condition,)) for exit_ in exits if exit_ is not None)


def _voting(launch: Launch, branch: If | While | Loop) -> Launch:
    assert isinstance(branch, If | While), "a block votes on a condition"
    vote = Call(BOOL, "any_of_block", (branch.condition,))
    changed = replace(branch, condition=vote, comments=(*branch.comments, _WHY))
    return replace(launch, body=with_instead(launch.body, {id(branch): (changed,)}))
