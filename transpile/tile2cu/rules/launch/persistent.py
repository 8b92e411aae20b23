"""Persistent kernels: one CTA per SM, each of which loops over output tiles."""

from collections.abc import Iterator
from math import prod

from tile2cu.analysis.accesses import read_by_itself, variables, viewed
from tile2cu.analysis.prelude import (
    around,
    before,
    outermost,
    producer_loop,
    producer_loops,
    values_of_tile,
    walk_to_active,
)
from tile2cu.analysis.sync_calls import is_named_barrier
from tile2cu.core.decisions import (
    PERSISTENT,
    PIPELINE,
    PROLOGUE_LOADS,
    REGISTER_OPERAND,
    REGISTER_SHARES,
    SCHEDULE,
    WARPS,
)
from tile2cu.core.expr import Role
from tile2cu.core.program import (
    Gemm,
    Launch,
    Reduce,
    Scope,
)
from tile2cu.core.schedule import MmaOverlap, Persistent, Pipeline, PrologueLoads
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.launch.early_exit import QUIET, early_exit_of
from tile2cu.rules.launch.grid import equal_trip_counts
from tile2cu.rules.memory.storage import shared_tiles

_ATTENTION = """
Q_shared = T.alloc_shared((128, 128), "float16")
K_shared = T.alloc_shared((128, 128), "float16")
V_shared = T.alloc_shared((128, 128), "float16")
S = T.alloc_fragment((128, 128), "float32")
P = T.alloc_fragment((128, 128), "float16")
O = T.alloc_fragment((128, 128), "float32")
T.copy(Z[bx * 128, 0], Q_shared)
T.clear(O)
for k in T.Pipelined({iterations}, num_stages=1):
    T.copy(Z[k * 128, 0], K_shared)
    T.copy(Z[k * 128, 64], V_shared)
    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
    T.copy(S, P)
    T.gemm(P, V_shared, O)
T.copy(O, X[bx * 128, 0])
"""


_SKIPPED = (
    _ATTENTION.format(iterations="8")
    .replace("\n    ", "\n        ")
    .replace("num_stages=1):", "num_stages=1):\n    if A[k, 0] != 0:")
)
_ACTIVE_ITERATIONS = "tiles from a queue, with their active iterations"


def _example(iterations: str, value: str) -> Example:
    text = _ATTENTION.format(iterations=iterations)
    return Example(text, "launch", "persistent", value, target="cuda:sm_90a", threads=256)


@rule(
    "schedule.grid.persistent",
    phase=Phase.PIPELINE,
    on=Launch,
    reads=(PERSISTENT, PIPELINE, PROLOGUE_LOADS, REGISTER_OPERAND, REGISTER_SHARES, SCHEDULE, WARPS),
    writes=(PERSISTENT,),
    source="measured on an H200: benchmarks/RESULTS.md, 2 to 10 % of attention",
    examples=(
        _example("8", "statically assigned tiles"),
        _example("bx + 1", "tiles from a queue"),
        Example(_SKIPPED, "launch", "persistent", _ACTIVE_ITERATIONS, target="cuda:sm_90a", threads=256),
    ),
)
def persistent(launch: Launch, context: Context) -> Iterator[Decision]:
    """Where one block fills an SM, the kernel is persistent: a tile's first loads overlap the previous epilogue.

    MMAs are software-pipelined, and the loop-invariant operand is in registers, so that its tile is free for the next
    one's. Tiles of equal work are assigned statically; tiles of unequal work, as of causal attention or of sequences
    whose lengths are in memory, are fetched from a queue in global memory. The producer fetches the next tile, computes
    its coordinates, and publishes them to the consumers; it skips tiles that write nothing, as those past the end of a
    sequence. Where iterations are skipped it finds the active ones, and publishes each with the tile that it loads for
    it. The scheduler's list of non-empty tiles is sized by the tensors' shapes: where a scalar sizes the grid, and
    tiles may write nothing, blocks exit early instead (`schedule.grid.empty-tiles`).

    Gives: the tile scheduler.
    """
    producer = producer_loop(launch, context.facts)
    first = context.facts.get(launch, PROLOGUE_LOADS)
    if producer is None or first is None or context.facts.get(launch, REGISTER_SHARES) is None or launch.prelude:
        return
    if len(producer_loops(launch, context.facts)) > 1:
        return
    loop, pipeline = producer
    taken = walk_to_active(loop, pipeline, launch.body)
    iteration = taken.values if taken is not None else ()
    if (around(launch.body, loop) and not iteration) or prod(launch.cluster) > 1:
        return
    overlap = context.facts.get(loop, SCHEDULE)
    if not isinstance(overlap, MmaOverlap) or not _only_pipelines(first, pipeline, context):
        return
    if any(context.facts.get(mma, REGISTER_OPERAND) is None for mma in overlap.first):
        return
    found = early_exit_of(launch, before(launch.body, outermost(launch.body, loop)), context)
    if found is not None and not _sized_by_shapes(launch):
        return  # tiles that write nothing would run; blocks of a grid of all tiles exit immediately
    idle = found.condition if found is not None else None
    queue = bool(iteration) or idle is not None or not equal_trip_counts(loop, context)
    work = values_of_tile(launch, context.facts, idle)
    if not work:
        return  # nothing depends on the block: all tiles are the same, as that of a grid of one block
    if (
        not iteration or idle is None
    ):  # a whole warp searches active iterations, one thread takes tiles that another warp publishes
        yield launch, PERSISTENT, Persistent(queue, work, idle, iteration)


def _sized_by_shapes(launch: Launch) -> bool:
    """Whether the tensors' shapes alone determine the grid, and so the size of the list of non-empty tiles."""
    return not any(var.role is Role.SCALAR for var in variables(*launch.grid))


def _only_pipelines(first: PrologueLoads, pipeline: Pipeline, context: Context) -> bool:
    """Whether shared memory has only stages of pipelines, which the producer fills and the consumers release."""
    launch = context.launch
    rings = [*pipeline.buffers, *(load.dst.buffer for load in first.loads)]
    known = all(isinstance(stmt, QUIET) or is_named_barrier(stmt, launch.threads) for stmt in context.statements)
    own = all(any(tile is ring for ring in rings) and not viewed(launch, tile) for tile in shared_tiles(launch))
    readers = [
        stmt for stmt in context.statements if any(load.dst.buffer in read_by_itself(stmt) for load in first.loads)
    ]
    inside_warps = all(
        context.facts[stmt, WARPS].n == 1 if isinstance(stmt, Gemm) else stmt.dim == 1
        for stmt in context.statements
        if isinstance(stmt, Gemm | Reduce)
    )
    fragments = all(tile.scope in (Scope.SHARED, Scope.FRAGMENT) for tile in launch.tiles)
    return known and own and fragments and inside_warps and readers == [first.reader]
