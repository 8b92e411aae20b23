"""Branches on tensors that the kernel writes: the threads of a block agree, so that all of them reach its barriers.

`if Flag[0] > 0: ...` is `if any_of_block(Flag[0] > 0): ...`. Another block may write the element while the threads of
this one read it, each at its own time.
"""

from dataclasses import replace

from tile2cu.analysis.reach import decisions
from tile2cu.analysis.uniformity import BLOCK_MEMORY, MEMORY, uniformity_of
from tile2cu.core.dtype import BOOL
from tile2cu.core.expr import Call
from tile2cu.core.program import Launch, Loop, Stmt
from tile2cu.core.rebuild import with_instead

_WHY = "All threads of the block go one way, also where another block writes meanwhile what they read"


def agreed_around(launch: Launch, stmt: Stmt) -> Launch | None:
    """The launch in which a block votes in the outermost branch or loop around a statement that needs it.

    None where none does, or where it is in code that some threads do not reach, or in a loop whose trip count is read.
    """
    at_one_time, alone = uniformity_of(launch, MEMORY), uniformity_of(launch, BLOCK_MEMORY)
    for branch, asked in decisions(launch, stmt):
        if all(map(alone.holds, asked)):
            continue
        if isinstance(branch, Loop) or not all(map(at_one_time.holds, asked)):
            return None
        vote = Call(BOOL, "any_of_block", (branch.condition,))
        changed = replace(branch, condition=vote, comments=(*branch.comments, _WHY))
        return replace(launch, body=with_instead(launch.body, {id(branch): (changed,)}))
    return None
