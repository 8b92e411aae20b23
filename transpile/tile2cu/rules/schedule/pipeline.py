"""Which copies of a pipelined loop are prefetched, and the prefetch distance."""

from collections.abc import Callable, Iterator

from tile2cu.analysis.accesses import lets_for, loaded, variables_of, without_unused_lets
from tile2cu.analysis.legality import why_no_pipeline
from tile2cu.analysis.prefetch import prefetchable, unprefetchable
from tile2cu.analysis.prelude import walk_to_active
from tile2cu.analysis.sync_calls import syncs_grid
from tile2cu.analysis.uses import is_at_top, statements, without
from tile2cu.core.decisions import (
    FEWER_STAGES,
    NOT_PIPELINED,
    NOT_PREFETCHED,
    PIPELINE,
    SCHEDULE,
    STAGES,
    WARP_SPECIALISED,
)
from tile2cu.core.expr import Load, walk
from tile2cu.core.facts import rejected
from tile2cu.core.memo import kept
from tile2cu.core.program import (
    Buffer,
    Copy,
    Launch,
    Loop,
    LoopKind,
    Parallel,
    Scope,
    Stmt,
    Store,
)
from tile2cu.core.schedule import PingPong, Pipeline
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

_GEMM = """
A_shared = T.alloc_shared((64, 32), "float16")
B_shared = T.alloc_shared((32, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
for k in T.Pipelined(4, num_stages=3):
    T.copy(X[0, k * 32], A_shared)
    T.copy(X[k * 32, 0], B_shared)
    T.gemm(A_shared, B_shared, C_local)
"""


@rule(
    "pipeline.loop.cp-async",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(WARP_SPECIALISED,),
    writes=(FEWER_STAGES, NOT_PIPELINED, NOT_PREFETCHED, PIPELINE, STAGES),
    source="PTX ISA, 'cp.async' and 'cp.async.wait_group'",
    examples=(
        Example(_GEMM, 4, "pipeline", "3 stages of A_shared, B_shared"),
        Example(_GEMM, "A_shared", "stages", "3"),
    ),
)
def cp_async(op: Loop, context: Context) -> Iterator[Decision]:
    """The copies from global to shared memory of a pipelined loop are issued num_stages - 1 iterations earlier.

    A copy can be prefetched when it depends on the loop's variable and on nothing that the body computes, when nothing
    else writes its tile, and when the tile is not read before it in the same iteration. T.tma_copy stays in its
    iteration: the user waits for it.

    Gives: the pipeline of the loop, and the number of stages of each prefetched tile; why others are not prefetched.
    """
    yield from _why_not_prefetched(op, context.launch)
    pipeline = pipeline_of(op, context.launch, producer=False) if context.target.cp_async else None
    specialised = context.facts.get(context.launch, WARP_SPECIALISED)
    if pipeline is not None and not (specialised and specialised.producer):
        yield op, PIPELINE, pipeline
        for buffer in pipeline.buffers:
            yield buffer, STAGES, stages_of(buffer, context.launch, prefetch_pipeline)


def prefetch_pipeline(loop: Loop, launch: Launch) -> Pipeline | None:
    """The pipeline of a loop whose threads all load."""
    return pipeline_of(loop, launch, producer=False)


def stages_of(tile: Buffer, launch: Launch, made: Callable[[Loop, Launch], Pipeline | None]) -> int:
    """The stages of the deepest pipeline that loads the tile."""
    found = (made(loop, launch) for loop in statements(launch.body, Loop))
    return max(pipeline.stages for pipeline in found if pipeline is not None and tile in pipeline.buffers)


@kept
def pipeline_of(loop: Loop, launch: Launch, *, producer: bool) -> Pipeline | None:
    """The pipeline that a loop asks for; None when it asks for none, or no load can be prefetched.

    A producer loads for a loop without stages as well, into one: its consumers wait as they would for their own copies.
    Rules call it some seven times per loop, and both are immutable: the result is cached in the loop, with the launch.
    """
    kept: dict[bool, tuple[Launch, Pipeline | None]] = vars(loop).setdefault("pipelines", {})
    if producer not in kept or kept[producer][0] is not launch:
        kept[producer] = launch, _pipeline_of(loop, launch, producer)
    return kept[producer][1]


def _pipeline_of(loop: Loop, launch: Launch, producer: bool) -> Pipeline | None:
    parts = _parts(loop, launch, by_tma=producer)
    return _legal(Pipeline(max(1, loop.num_stages), *parts, producer=producer), loop) if parts else None


def iterations_adjacent(loop: Loop, pipeline: Pipeline, context: Context) -> bool:
    """Whether nothing runs between a loop's iterations: it is at the top, or in an unskipped iteration there."""
    return is_at_top(loop, context.launch) or walk_to_active(loop, pipeline, context.launch.body) is not None


def ping_pong_of(context: Context) -> PingPong | None:
    """The schedule by which two warpgroups take iterations of the producer's loop alternately; None for none."""
    found = (context.facts.get(op, SCHEDULE) for op in statements(context.launch.body, Loop, below=False))
    return next((each for each in found if isinstance(each, PingPong)), None)


def prefetchable_vectors(loop: Loop, launch: Launch) -> tuple[Copy, ...]:
    """The loads of tiles of one dimension that could be prefetched."""
    return tuple(filter(_is_vector, prefetchable(loop, launch)))


@kept
def staged_pipeline_of(loop: Loop, launch: Launch) -> Pipeline | None:
    """The same where one of the tiles is held in registers: one stage less, and at most two."""
    parts = _parts(loop, launch)
    return _legal(Pipeline(min(max(1, loop.num_stages - 1), 2), *parts, staged=True), loop) if parts else None


def _legal(pipeline: Pipeline, loop: Loop) -> Pipeline | None:
    return None if why_no_pipeline(pipeline, loop) else pipeline


def _parts(loop: Loop, launch: Launch, *, by_tma: bool = False) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]] | None:
    """(the prefetched loads, the rest) of a pipelined loop's body."""
    if loop.kind is not LoopKind.PIPELINED or (loop.num_stages < 1 and not by_tma) or syncs_grid(loop.body):
        return None
    loads = tuple(stmt for stmt in prefetchable(loop, launch) if not (by_tma and _is_vector(stmt)))
    if not loads:
        return None
    rest = without(loop.body, loads)
    return (*lets_for(set().union(*map(variables_of, loads)), loop.body), *loads), without_unused_lets(rest)


def _is_vector(stmt: Copy) -> bool:
    """Whether a copy fills a tile of one dimension."""
    return stmt.dst.buffer.rank == 1


def _why_not_prefetched(loop: Loop, launch: Launch) -> Iterator[Decision]:
    """Why copies from tensors in a pipelined loop are not prefetched, or are with fewer stages than asked for."""
    copies = [stmt for stmt in statements(loop.body, Copy, below=False) if stmt.src.buffer.scope is Scope.GLOBAL]
    if loop.kind is LoopKind.PIPELINED and loop.num_stages < 1 and copies:
        yield rejected(loop, NOT_PIPELINED, "num_stages is 0", "num_stages=2 or more")
    if loop.stages_asked:
        because, stages = "their tiles do not fit into shared memory", f"{loop.stages_asked} stages"
        yield rejected(loop, FEWER_STAGES, because, "smaller tiles", named=stages)
    if loop.kind is LoopKind.PIPELINED and loop.num_stages > 0:
        for copy in copies:
            because, edit = unprefetchable(copy, loop, launch)
            if because:
                yield rejected(copy, NOT_PREFETCHED, because, edit)
        for op in statements(loop.body, Parallel, below=False):
            if because := _fills_by_elements(op):
                yield rejected(op, NOT_PREFETCHED, because, "T.copy of whole boxes of the tensor, where it has them")


def _fills_by_elements(op: Parallel) -> str:
    """Why a loop that fills shared tiles from tensors is not prefetched; empty for other loops."""
    for store in statements(op.body, Store, below=False):
        if store.buffer.scope is Scope.SHARED:
            read = [part for part in loaded(store.value) if part.scope is Scope.GLOBAL]
            positions = [part for load in walk(store.value) if isinstance(load, Load) for part in loaded(*load.indices)]
            if read and positions:
                return f"it gathers rows that `{positions[0].name}` selects"
            if read:
                return f"it computes `{store.buffer.name}` element by element from `{read[0].name}`"
    return ""
