"""Clusters: the hardware that their blocks require, multicast loads, and the barrier that ends a kernel."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.clusters import below_uses_of_others, concerns_cluster, is_of_cluster, uses_other_blocks
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.prelude import around
from tile2cu.analysis.sync_calls import is_cluster_barrier
from tile2cu.analysis.uses import has, read_in, written_in
from tile2cu.core.decisions import (
    CLUSTER_CALL,
    CLUSTER_SYNC,
    EXIT_BARRIER,
    MULTICAST_BLOCKS,
    MULTICAST_MASK,
    PIPELINE,
    SCHEDULE,
)
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Address, Expr, Role, Var, walk
from tile2cu.core.program import Atomic, AtomicTile, Break, CallStmt, Copy, Launch, Loop, Scope, Stmt
from tile2cu.core.schedule import MmaOverlap, PingPong
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

_SHARED = """\
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.clear(C_local)
for k in T.Pipelined(64, num_stages=3):
    T.copy(Z[0, k * 64], A_shared)
    T.copy(Z[k * 64, bx * 64], B_shared)
    T.gemm(A_shared, B_shared, C_local)
T.copy(C_local, Y[0, bx * 64])"""
_OTHERS = """\
there = T.alloc_cluster_barrier(128)
T.mbarrier_arrive(there, 0)
T.mbarrier_wait_parity(there, 0)"""


@rule(
    "launch.cluster.available",
    phase=Phase.WARPS,
    on=Launch,
    writes=(CLUSTER_SYNC,),
    source="CUDA C++ Programming Guide, 'Thread Block Clusters': compute capability 9.0",
    examples=(Example("T.cluster_sync()", "launch", "cluster_sync", "cluster", target="cuda:sm_90a"),),
)
def cluster(launch: Launch, context: Context) -> Iterator[Decision]:
    """Clusters of blocks and distributed shared memory need sm_90.

    Gives: that the kernel has cluster barriers, or accesses distributed shared memory.
    Errors: T2C-S006 where the target lacks them.
    """
    position = next((op.span for op in context.statements if concerns_cluster(op)), None)
    if (position is not None or launch.cluster) and (context.target.mfma or context.target.capability < (9, 0)):
        raise Tile2CuError(
            "T2C-S006",
            f"{context.target.arch} has no clusters of blocks",
            position or launch.span,
            help="write `with T.Kernel(...)` without `cluster_dims`, and let each block load what it needs, or take "
            "cuda:sm_90a",
        )
    if position is not None:
        yield launch, CLUSTER_SYNC, "cluster"


@rule(
    "pipeline.loop.multicast",
    phase=Phase.SYNC,
    on=Loop,
    reads=(PIPELINE, SCHEDULE),
    writes=(MULTICAST_BLOCKS, MULTICAST_MASK),
    source="PTX ISA, 'cp.async.bulk.tensor', .multicast::cluster",
    examples=(
        Example(_SHARED, 6, "multicast_mask", "3", target="cuda:sm_90a", cluster=2),
        Example(_SHARED, 5, "multicast_blocks", "4", target="cuda:sm_90a", cluster=4),
    ),
)
def multicast(op: Loop, context: Context) -> Iterator[Decision]:
    """The first block of a cluster loads, by multicast, the tiles that all blocks of the cluster load.

    Only where the user asks for clusters: with them a GEMM measured 2 % less (benchmarks/RESULTS.md). The blocks of a
    cluster are along one axis of the grid, on which neither the coordinates of the load nor the trip count depend.

    Gives: how many blocks share a pipeline, whose stages are free when all have released them, and the blocks that each
    load is for.
    """
    pipeline = context.facts.get(op, PIPELINE)
    launch = context.launch
    along = [(block, extent) for block, extent in zip(launch.blocks, launch.cluster, strict=False) if extent > 1]
    if pipeline is None or not pipeline.producer or len(along) != 1 or not _is_simple(op, context):
        return
    block, extent = along[0]
    if not _is_same(block, context, op.start, op.stop, op.step):
        return
    shared = [load for load in pipeline.copies if _is_same(block, context, *(part.start for part in load.src.ranges))]
    for load in shared:
        yield load, MULTICAST_MASK, (1 << extent) - 1
    if shared:
        yield op, MULTICAST_BLOCKS, extent


def _is_simple(op: Loop, context: Context) -> bool:
    """Whether the iterations use one pipeline, in order."""
    plain = not around(context.launch.body, op) and not has(op.body, Break)
    return plain and not isinstance(context.facts.get(op, SCHEDULE), MmaOverlap | PingPong)


def _is_same(block: Var, context: Context, *exprs: Expr) -> bool:
    """Whether expressions have one value in all blocks that differ in this index only."""
    parts = [part for expr in exprs for part in walk(context.bounds.expanded(expr))]
    own = any(isinstance(part, Var) and part.role is Role.MUTABLE for part in parts)
    return not own and block not in parts and not any(map(is_of_cluster, parts))


@rule(
    "sync.cluster.exit-barrier",
    phase=Phase.SYNC,
    on=Launch,
    writes=(EXIT_BARRIER,),
    source="CUDA C++ Programming Guide, 'Distributed Shared Memory': a block must exist while others use its memory",
    examples=(Example(_OTHERS, "launch", "exit_barrier", "True", target="cuda:sm_90a"),),
)
def exit_barrier(launch: Launch, context: Context) -> Iterator[Decision]:
    """Where the user accesses distributed shared memory, no block exits before all blocks have finished.

    A multicast pipeline needs no such barrier, which would wait until the whole GPU sees the results: its producer
    exits when all blocks have released its stages.

    Gives: that a cluster barrier ends the kernel, unless the user wrote one below all such accesses. A bulk copy that
    arrives at another block's barrier may still read this block's tile then.
    """
    below = below_uses_of_others(launch.body)
    if below is not None and not any(map(is_cluster_barrier, below)):
        yield launch, EXIT_BARRIER, True


@rule(
    "sync.cluster.arrives-as-reader",
    phase=Phase.SYNC,
    on=CallStmt,
    writes=(CLUSTER_CALL,),
    source="PTX ISA, 'mbarrier.arrive': .release.cta; CUTLASS' ClusterBarrier::arrive has this scope, too",
    examples=(
        Example(_OTHERS, 2, "cluster_call", "mbarrier_arrive_as_reader", target="cuda:sm_90a"),
        Example(_OTHERS, 3, "cluster_call", "mbarrier_wait", target="cuda:sm_90a"),
    ),
)
def arrives_as_reader(op: CallStmt, context: Context) -> Iterator[Decision]:
    """Where threads write no data that other blocks read, remote arrivals only report completed reads.

    An arrival that releases writes to other blocks waits until the whole GPU sees earlier writes, some 1000 cycles on
    an H200. TMA completes the transactions of its own loads.

    Gives: the function that arrives at another block's barrier, or waits at the own one, with the scope of a block.
    """
    within = {"mbarrier_arrive": "mbarrier_arrive_as_reader", "mbarrier_wait_cluster": "mbarrier_wait"}
    if (uses_other_blocks(op) or op.call.function == "mbarrier_wait_cluster") and not _passes_data(context):
        yield op, CLUSTER_CALL, within[op.call.function]


def _passes_data(context: Context) -> bool:
    """Whether a thread may write data that threads of other blocks read."""
    written = written_in(context.launch.body)
    read = read_in(context.launch.body)
    passed = any(tile.scope is Scope.GLOBAL and is_among(tile, read) for tile in written)
    return passed or any(map(_may_pass_data, context.statements))


def _may_pass_data(op: Stmt) -> bool:
    if isinstance(op, Copy) and op.block is not None:
        return True
    by_address = any(isinstance(part, Address) for expr in expressions(op) for part in walk(expr))
    return by_address or isinstance(op, Atomic | AtomicTile)
