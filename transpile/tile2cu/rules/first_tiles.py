"""Tiles that are loaded once, before a producer's loop: TMA brings them too."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import buffers_read, buffers_written, element_accesses, expressions, touches, viewed
from tile2cu.analysis.load_refusals import why_no_prelude
from tile2cu.analysis.prelude import around, before, needed_on, outermost, producer_loop
from tile2cu.core.decisions import CALL, PIPELINE, PROLOGUE_LOADS, SHARED_LAYOUT
from tile2cu.core.expr import Address, static_value, walk
from tile2cu.core.program import Copy, Launch, Scope, operations, walk_stmts
from tile2cu.core.schedule import FirstTiles
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.hopper import load_refusal
from tile2cu.rules.pipeline import turns_follow_alone

_PRODUCT_BEFORE = """
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
    examples=(Example(_PRODUCT_BEFORE, "launch", "first_tiles", "F_shared", target="cuda:sm_90a"),),
)
def first_tiles(launch: Launch, context: Context) -> Iterator[Decision]:
    """Whole tiles that are copied once, before the loop that a producer loads for, the producer loads first of all.

    They are under way together with the first turns' tiles, and no thread of the others carries them through registers.
    Their bytes arrive at a barrier of their own, where all threads wait before the first statement that reads one.

    Gives: the copies, and the statement that waits for them.
    """
    producer = producer_loop(launch, context.facts)
    if producer is None:
        return
    loop, pipeline = producer
    if not turns_follow_alone(loop, pipeline, context):
        return
    path = around(launch.body, loop)
    above = before(launch.body, outermost(launch.body, loop))
    found = [op for op in above if isinstance(op, Copy) and _fits(op, launch, context)]
    needed = tuple(expr for op in found for expr in expressions(op))
    if not found or why_no_prelude((*needed_on(loop, pipeline.loads, path), *needed), above):
        return
    tiles = {op.dst.buffer for op in found}
    place, reader = next(((at, stmt) for at, stmt in enumerate(launch.body) if tiles & buffers_read(stmt)), (0, None))
    loads = tuple(op for op in found if any(op is stmt for stmt in launch.body[:place]))
    if reader is not None and loads:
        yield launch, PROLOGUE_LOADS, FirstTiles(loads, reader)
        for op in loads:
            yield op, CALL, "tma_load"


def _fits(op: Copy, launch: Launch, context: Context) -> bool:
    """Whether one thread may fill the tile by TMA before anything else happens: it is whole, and nothing else fills it.

    A row's bytes must not depend on a size at run time: the launcher would refuse sizes that it takes without.
    """
    tensor, tile = op.src.buffer, op.dst.buffer
    if (tensor.scope, tile.scope) != (Scope.GLOBAL, Scope.SHARED) or op.barrier is not None or op.reason:
        return False
    if any(access.buffer.scope is not Scope.GLOBAL for access in element_accesses((op,))):
        return False  # where it lies is known only to those who have that tile
    if not op.dst.whole or tile.of is not None or viewed(launch, tile) or load_refusal(op):
        return False
    layout = context.facts[tile, SHARED_LAYOUT]
    writers = [stmt for stmt in operations(launch.body) if tile in buffers_written(stmt)]
    outside = any(touches(buffers_written(stmt), tensor) for stmt in launch.body)
    swizzled = layout.swizzle > 0 and tile.static_shape[0] <= _MOST_ROWS
    parts = [part for stmt in walk_stmts(launch.body) for expr in expressions(stmt) for part in walk(expr)]
    addressed = any(isinstance(part, Address) and part.buffer in (tile, tensor) for part in parts)
    alone = writers == [op] and not outside and not addressed
    return alone and swizzled and static_value(tensor.shape[-1]) is not None
