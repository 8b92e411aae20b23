"""What orders the exchanges of a reduction's parts through shared memory: its own barrier, or none that it needs."""

from enum import Enum

from tile2cu.analysis.prelude import around
from tile2cu.analysis.uses import exits, statements
from tile2cu.core.decisions import ALIASING, PERSISTENT, REDUCTION_WARPS, SCHEDULE
from tile2cu.core.program import Buffer, If, Loop, Reduce, Scan, Stmt, While
from tile2cu.plan.resolved import Resolved


class Reuse(Enum):
    """What orders the stores of an exchange after the loads of the last one (WAR)."""

    BARRIER = "a barrier before the stores"
    ONCE = "the kernel exchanges once"
    OTHERS = "another reduction's barrier between two exchanges"


def reuse_of(result: Buffer, resolved: Resolved) -> Reuse:
    """What orders the exchanges of a reduction with this result. Nothing else uses their memory, or a barrier does."""
    launch, facts = resolved.launch, resolved.facts
    aliasing = facts.get(launch, ALIASING)
    found = [op for op in statements(launch.body, Reduce, Scan) if op.dst.name == result.name]
    if len(found) != 1 or (aliasing is not None and aliasing.joins_workspaces):
        return Reuse.BARRIER
    outer = around(launch.body, found[0])
    loops = [each for each in outer if isinstance(each, Loop | While)]
    if loops:
        return Reuse.OTHERS if _synchronises(loops[-1], found[0], resolved) else Reuse.BARRIER
    repeats = facts.get(launch, PERSISTENT) is not None or not all(isinstance(each, If) for each in outer)
    return Reuse.BARRIER if repeats else Reuse.ONCE


def _synchronises(loop: Loop | While, op: Stmt, resolved: Resolved) -> bool:
    """Whether each iteration of a loop, in the order of its statements, has the barrier of another reduction."""
    if resolved.launch.groups != 1 or any(True for _ in exits(loop.body)):
        return False
    if isinstance(loop, Loop) and resolved.facts.get(loop, SCHEDULE) is not None:
        return False
    others = (stmt for stmt in statements(loop.body, Reduce, below=False) if stmt is not op)
    return any(resolved.facts[other, REDUCTION_WARPS] > 1 and not resolved.defers(other) for other in others)
