"""Hopper: vectors that TMA does not load, and that the consumers prefetch one iteration earlier."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import expressions, lets_for, variables
from tile2cu.core.decisions import PIPELINE, SCHEDULE, WARP_SPECIALISED
from tile2cu.core.program import Loop
from tile2cu.core.schedule import PrefetchedVectors
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.schedule.candidates import scheduled
from tile2cu.rules.schedule.pipeline import prefetchable_vectors

_LINE = """
A_shared = T.alloc_shared((64, 64), "float16")
line = T.alloc_shared((64,), "float32")
C_local = T.alloc_fragment((64, 64), "float32")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.copy(X[0, k * 64 : (k + 1) * 64], line)
    T.gemm(A_shared, A_shared, C_local)
    for i, j in T.Parallel(64, 64):
        C_local[i, j] += line[j]
"""
_FEWEST_BITS = 8  # of elements that do not share bytes


@rule(
    "pipeline.loop.prefetched-vectors",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(PIPELINE, WARP_SPECIALISED),
    absent=(SCHEDULE,),
    writes=(SCHEDULE,),
    source="measured on an H200: benchmarks/RESULTS.md, 8 to 11 % of attention backward",
    examples=(Example(_LINE, 5, "schedule", "line loaded one iteration earlier", target="cuda:sm_90a"),),
)
def prefetched_vectors(op: Loop, context: Context) -> Iterator[Decision]:
    """With a producer, tiles of one dimension are prefetched to registers one iteration earlier where that is possible.

    TMA's tiles have two dimensions, so that the consumers load these; an iteration that starts with such a load delays
    its MMAs by the memory latency. Loops with software-pipelined MMAs or alternating warpgroups have loads of two
    dimensions only.

    Gives: the copies.
    """
    pipeline = context.facts.get(op, PIPELINE)
    if pipeline is None or not pipeline.producer:
        return
    lines = tuple(
        copy
        for copy in prefetchable_vectors(op, context.launch)
        if any(copy is stmt for stmt in pipeline.body) and copy.src.buffer.dtype.bits >= _FEWEST_BITS
    )
    if lines:
        names = variables(*(expr for copy in lines for expr in expressions(copy)))
        candidate = PrefetchedVectors(lines, pipeline.body, lets_for(names, op.body))
        found = scheduled((candidate,), op, pipeline, context)
        if found is not None:
            yield op, SCHEDULE, found
