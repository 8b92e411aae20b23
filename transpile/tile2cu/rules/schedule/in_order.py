"""Hopper: iterations in order, with vectors that TMA does not load prefetched, and MMAs in flight until needed."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import expressions, lets_for, variables
from tile2cu.core.decisions import LAYOUT, NO_MMA_IN_FLIGHT, ON_WGMMA, PIPELINE, SCHEDULE, WARP_SPECIALISED
from tile2cu.core.facts import rejected
from tile2cu.core.program import Copy, Loop
from tile2cu.core.schedule import InOrder, Pipeline
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.schedule.candidates import scheduled
from tile2cu.rules.schedule.concurrent_mmas import concurrent_mmas, most_alive
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
_THREE = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((64, 64), "float32")
P = T.alloc_fragment((64, 64), "float16")
C = T.alloc_fragment((64, 64), "float32")
D = T.alloc_fragment((64, 64), "float32")
T.clear(D)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.copy(Z[0, k * 64], B_shared)
    T.gemm(A_shared, B_shared, S, clear_accum=True)
    T.gemm(B_shared, A_shared, C, clear_accum=True)
    T.copy(S, P)
    T.gemm(P, A_shared, D)
    for i, j in T.Parallel(64, 64):
        D[i, j] += C[i, j]
"""
_FEWEST_BITS = 8  # of elements that do not share bytes


@rule(
    "pipeline.loop.in-order",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(LAYOUT, ON_WGMMA, PIPELINE, WARP_SPECIALISED),
    absent=(SCHEDULE,),
    writes=(NO_MMA_IN_FLIGHT, SCHEDULE),
    source="measured on an H200: benchmarks/RESULTS.md, prefetched vectors 8 to 11 % of attention backward",
    examples=(
        Example(_LINE, 5, "schedule", "line loaded one iteration earlier", target="cuda:sm_90a"),
        Example(_THREE, 8, "schedule", "S, C in flight until needed", target="cuda:sm_90a"),
    ),
)
def in_order(op: Loop, context: Context) -> Iterator[Decision]:
    """With a producer, vectors are prefetched one iteration earlier, and of three MMAs or more each remains in flight.

    TMA's tiles have two dimensions, so that the consumers load those of one dimension, to registers; an iteration that
    starts with such a load delays its MMAs by the memory latency.

    An MMA remains in flight until a statement needs its result or its operands. The last MMA waits for itself and all
    earlier ones, so that none is in flight when the iteration's stages are released. Operands in shared memory are
    tiles that the producer loads: other tiles are written behind barriers that do not wait for MMAs. Fragments that are
    live together, operands of MMAs in flight included, must fit a thread's registers: otherwise MMAs with an operand in
    registers are awaited immediately, the first ones first.

    Loops with software-pipelined MMAs, MMAs in flight across iterations or alternating warpgroups have schedules of
    their own.

    Gives: the copies, which MMAs remain in flight, and before which statements they are awaited.
    """
    pipeline = context.facts.get(op, PIPELINE)
    if pipeline is None or not pipeline.producer or context.facts.get(op, SCHEDULE) is not None:
        return
    candidates = tuple(_candidates(op, pipeline, context))
    found = scheduled(candidates, op, pipeline, context)
    if found is not None:
        yield op, SCHEDULE, found
    flying = [each for each in candidates if each.waits]
    if flying and (found is None or not found.waits):
        alive = most_alive(flying[-1], context)
        because = f"up to {alive} registers per thread of fragments would be live together, too many with other values"
        yield rejected(op, NO_MMA_IN_FLIGHT, because, "choose smaller tiles")


def _candidates(loop: Loop, pipeline: Pipeline, context: Context) -> Iterator[InOrder]:
    """The schedules with vectors, then those without, and the most MMAs in flight first.

    A loop of one iteration, as that of a loop which skips some, prefetches for none.
    """
    vectors = tuple(
        copy
        for copy in prefetchable_vectors(loop, context.launch)
        if loop.count != 1
        and all(copy is not load for load in pipeline.loads)
        and copy.src.buffer.dtype.bits >= _FEWEST_BITS
    )
    waits = (*concurrent_mmas(pipeline.body, context), ())
    choices: tuple[tuple[Copy, ...], ...] = (vectors, ()) if vectors else ((),)
    for copies in choices:
        names = variables(*(expr for copy in copies for expr in expressions(copy)))
        for each in waits:
            if copies or each:
                yield InOrder(pipeline.body, copies, lets_for(names, loop.body), each)
