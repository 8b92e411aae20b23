"""Clusters: what their blocks ask of the chip, and how long a block stays."""

from collections.abc import Iterator

from tile2cu.core.accesses import expressions
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Call, Expr, walk
from tile2cu.core.program import SYNC_CLUSTER, Copy, Effect, Launch, Stmt, is_cluster_barrier
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

_MEETINGS = (SYNC_CLUSTER, "cluster_arrive", "cluster_arrive_relaxed", "cluster_wait")
_OTHERS = """\
there = T.alloc_cluster_barrier(128)
T.mbarrier_arrive(there, 0)
T.mbarrier_wait_parity(there, 0)"""


@rule(
    "launch.cluster.available",
    phase=Phase.WARPS,
    on=Launch,
    source="CUDA C++ Programming Guide, 'Thread Block Clusters': compute capability 9.0",
    examples=(Example("T.cluster_sync()", "launch", "meets", "cluster", target="cuda:sm_90a"),),
)
def cluster(launch: Launch, context: Context) -> Iterator[Decision]:
    """Blocks that run side by side, and reach one another's shared memory, are there from sm_90 on.

    Gives: that the kernel has barriers of its cluster, or others' shared memory, if it has.
    Errors: T2C-S006 where the chip lacks them.
    """
    place = next((op.span for op in context.statements if _of_cluster(op)), None)
    if (place is not None or launch.cluster) and (context.target.mfma or context.target.capability < (9, 0)):
        raise Tile2CuError(
            "T2C-S006",
            f"{context.target.arch} has no clusters of blocks",
            place or launch.span,
            help="write `with T.Kernel(...)` without `cluster_dims`, and let each block load what it needs, or take "
            "cuda:sm_90a",
        )
    if place is not None:
        yield launch, "meets", "cluster"


@rule(
    "sync.cluster.stays",
    phase=Phase.SYNC,
    on=Launch,
    source="CUDA C++ Programming Guide, 'Distributed Shared Memory': a block must exist while others use its memory",
    examples=(Example(_OTHERS, "launch", "stays", "True", target="cuda:sm_90a"),),
)
def stays(launch: Launch, context: Context) -> Iterator[Decision]:
    """Where blocks use one another's shared memory, none ends before all have come to the end.

    Gives: that a barrier of the cluster ends the kernel, unless the user's does.
    """
    used = any(_uses_others(op) for op in context.statements)
    if used and not (launch.body and is_cluster_barrier(launch.body[-1])):
        yield launch, "stays", True


def _of_cluster(op: Stmt) -> bool:
    """Whether the statement has to do with other blocks of the cluster."""
    return _uses_others(op) or any(_is_of_cluster(part) for expr in expressions(op) for part in walk(expr))


def _is_of_cluster(part: Expr) -> bool:
    return isinstance(part, Call) and part.function in (*_MEETINGS, "block_rank")


def _uses_others(op: Stmt) -> bool:
    """Whether the statement uses another block's shared memory."""
    match op:
        case Copy():
            return op.blocks > 0 or op.block is not None
        case Effect():
            return op.call.function == "mbarrier_arrive" and len(op.call.args) == 2
        case _:
            return False
