"""Prologue loads: tiles that are loaded once, before a producer's loop, are loaded by TMA, too."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import element_accesses, expressions, parts_of, viewed
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.prelude import around, before, needed_on, outermost, producer_loop
from tile2cu.analysis.producer_loads import why_no_prelude
from tile2cu.analysis.uses import reading, writers, written_in
from tile2cu.core.decisions import CALL, PIPELINE, PROLOGUE_LOADS, SHARED_LAYOUT
from tile2cu.core.expr import Address, static_value
from tile2cu.core.program import Copy, Launch, Scope
from tile2cu.core.schedule import PrologueLoads
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.mma.hopper import columns_aligned_if, load_unsupported
from tile2cu.rules.schedule.pipeline import iterations_adjacent

_GEMM_BEFORE = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
F_shared = T.alloc_shared((64, 64), "float16")
T.copy(Z[0, 0], F_shared)
T.gemm(F_shared, F_shared, C_local, clear_accum=True)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[0, k * 64], A_shared)
    T.copy(Z[k * 64, 0], B_shared)
    T.gemm(A_shared, B_shared, C_local)
T.copy(C_local, X[0, 0])
"""
_MOST_ROWS = 256  # CUDA Driver API, 'cuTensorMapEncodeTiled': boxDim


@rule(
    "pipeline.copy.prologue",
    phase=Phase.PIPELINE,
    on=Launch,
    reads=(PIPELINE, SHARED_LAYOUT),
    writes=(CALL, PROLOGUE_LOADS),
    source="measured on an H200: benchmarks/RESULTS.md, Mamba-2",
    examples=(Example(_GEMM_BEFORE, "launch", "prologue_loads", "F_shared", target="cuda:sm_90a"),),
)
def prologue_loads(launch: Launch, context: Context) -> Iterator[Decision]:
    """Whole tiles that are copied once, before the producer's loop, are loaded by the producer before its iterations.

    Their loads overlap with those of the first iterations, and no consumer thread moves them through registers. Their
    bytes arrive at a barrier of their own, which all consumers wait for before the first statement that reads one.

    Gives: the copies, and the statement that waits for them.
    """
    producer = producer_loop(launch, context.facts)
    if producer is None:
        return
    loop, pipeline = producer
    if not iterations_adjacent(loop, pipeline, context):
        return
    path = around(launch.body, loop)
    above = before(launch.body, outermost(launch.body, loop))
    found = [op for op in above if isinstance(op, Copy) and _fits(op, launch, context)]
    needed = tuple(expr for op in found for expr in expressions(op))
    if not found or why_no_prelude((*needed_on(loop, pipeline.loads, path), *needed), above):
        return
    readers = reading(launch.body, frozenset(op.dst.buffer for op in found))
    loads = tuple(op for op in found if readers and op in before(launch.body, readers[0]))
    if loads:
        yield launch, PROLOGUE_LOADS, PrologueLoads(loads, readers[0])
        for op in loads:
            yield op, CALL, "tma_load"


def _fits(op: Copy, launch: Launch, context: Context) -> bool:
    """Whether one thread may fill the tile by TMA before all other statements: it is whole, and nothing else fills it.

    The bytes of a row must not depend on a run-time size: the launcher would reject sizes that it supports otherwise.
    """
    tensor, tile = op.src.buffer, op.dst.buffer
    if (tensor.scope, tile.scope) != (Scope.GLOBAL, Scope.SHARED) or op.barrier is not None or op.reason:
        return False
    if any(access.buffer.scope is not Scope.GLOBAL for access in element_accesses((op,))):
        return False  # only threads that have that tile know its coordinates
    if not op.dst.whole or tile.of is not None or viewed(launch, tile) or load_unsupported(op, context.bounds):
        return False
    if columns_aligned_if(op.src, context.bounds):
        return False  # sizes decide whether it starts where TMA loads
    layout = context.facts[tile, SHARED_LAYOUT]
    outside = is_among(tensor, written_in(launch.body))
    swizzled = layout.swizzle > 0 and tile.static_shape[0] <= _MOST_ROWS
    parts = [*parts_of(launch.statements)]
    addressed = any(isinstance(part, Address) and part.buffer in (tile, tensor) for part in parts)
    alone = writers(launch.body, tile) == [op] and not outside and not addressed
    return alone and swizzled and static_value(tensor.shape[-1]) is not None
