"""Hopper: two warpgroups take iterations alternately (ping-pong), so that one multiplies while the other does not."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_used,
    buffers_written,
    overwrites,
    read_by_itself,
    used_by_itself,
    variables,
    viewed,
)
from tile2cu.analysis.control import places_of_operations
from tile2cu.analysis.dependence import depends, is_among
from tile2cu.analysis.uses import all_expressions, is_at_top, outside_of, read_in, using, without, written_in
from tile2cu.core.decisions import NO_PING_PONG, ON_WGMMA, SCHEDULE, WARP_SPECIALISED
from tile2cu.core.facts import rejected
from tile2cu.core.program import Buffer, Copy, Fill, Gemm, If, Let, Loop, Parallel, Reduce, Scope, Stmt
from tile2cu.core.record import Record
from tile2cu.core.schedule import PingPong, Pipeline, RowFactor
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.mma.alternating import GROUPS, shares_columns_of_last
from tile2cu.rules.mma.hopper import all_on_wgmma, warpgroups
from tile2cu.rules.mma.wgmma_support import split_of
from tile2cu.rules.schedule.candidates import why_unsuitable
from tile2cu.rules.schedule.deferred_reductions import running_sums
from tile2cu.rules.schedule.pipeline import pipeline_of
from tile2cu.rules.schedule.rescale_factors import row_factor

_LATENT = """
Q_shared = T.alloc_shared((64, 128), "float16")
KV_shared = T.alloc_shared((64, 128), "float16")
S_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((64, 64), "float32")
O = T.alloc_fragment((64, 128), "float32")
T.copy(Z[0, 0], Q_shared)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], KV_shared)
    T.gemm(Q_shared, KV_shared, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
    T.copy(S, S_shared)
    T.gemm(S_shared, KV_shared, O, policy=T.GemmWarpPolicy.FullCol)
"""
_WARPGROUP = 128
_OWN = (Let, Gemm, Parallel, Reduce, Copy, Fill, If)  # statements that one warpgroup can run in its iterations


@rule(
    "pipeline.loop.ping-pong",
    phase=Phase.WARPS,
    on=Loop,
    reads=(ON_WGMMA, WARP_SPECIALISED),
    writes=(NO_PING_PONG, SCHEDULE),
    source="measured on an H200: benchmarks/RESULTS.md, MLA decode",
    examples=(Example(_LATENT, 7, "schedule", "S by one warpgroup per iteration, O by both", "cuda:sm_90a", 256),),
)
def ping_pong(op: Loop, context: Context) -> Iterator[Decision]:
    """Two warpgroups that share the columns of an iteration's last GEMM take the rest of the iterations alternately.

    Statements in front of the first GEMMs, such as a mask that indices decide, run while the tiles are loaded, before
    the other warpgroup's values are received: those that use exchanged values run after the GEMMs.

    If they shared the first GEMMs, too, each would read the whole A operand for half of the columns, and both would
    synchronise for every reduction. Instead each computes these GEMMs in its own iterations, while the other one
    multiplies, and passes the last GEMM's operand through the shared tile that the user allocated for it.

    Gives: the parts of an iteration and their order; for a running sum, that each thread keeps a partial sum.
    """
    if warpgroups(context.launch) != GROUPS or not all_on_wgmma(op, context) or not is_at_top(op, context.launch):
        return
    pipeline = pipeline_of(op, context.launch, producer=True)
    if pipeline is None or not shares_columns_of_last(pipeline):
        return
    found = _ping_pong(op, pipeline, context)
    if isinstance(found, PingPong):
        yield op, SCHEDULE, found
    else:
        yield rejected(op, NO_PING_PONG, found.because)


class _Unsupported(Record, frozen=True):
    because: str


def _ping_pong(loop: Loop, pipeline: Pipeline, context: Context) -> PingPong | _Unsupported:
    """The schedule of the alternating warpgroups, or why there is none."""
    if pipeline.stages < GROUPS:  # a warpgroup's tile would wait for the other one's to be released, and that for it
        return _Unsupported("each warpgroup needs a stage of its own")
    *before, second = pipeline.body
    assert isinstance(second, Gemm)
    sum_, tile = second.c.buffer, second.a.buffer
    late = tuple(using(tuple(before), sum_))
    own = without(tuple(before), late)
    store = next((op for op in own if tile in buffers_written(op)), None)
    if not isinstance(store, Copy) or not overwrites(store, tile) or not store.src.whole:
        return _Unsupported(f"`{tile.name}` is not a copy of a fragment")
    if any(store.src.buffer in buffers_written(op) for op in own[own.index(store) :]):
        return _Unsupported(f"`{store.src.buffer.name}` changes after the copy to `{tile.name}`")
    if tile.dtype.bits != 16 or second.transpose_a or not _used_here_only(tile, (store, second), context):
        return _Unsupported(f"`{tile.name}` is not a 16-bit tile that only the last GEMM reads")
    mmas = tuple(op for op in own if isinstance(op, Gemm))
    lets = tuple(op for op in own if isinstance(op, Let))
    in_front = without(tuple(op for op in own[: _last_mma(own)] if not isinstance(op, Gemm | Let)), (store,))
    between = without(own, (*mmas, *in_front, store))
    if reason := _why_not_alone(own, store, mmas, lets, pipeline, context):
        return _Unsupported(reason)
    if any(not isinstance(op, Parallel) for op in late) or _use((*late, second), lets):
        return _Unsupported(f"updates of `{sum_.name}` cannot move to the end of the iteration")
    running = next(running_sums(between, loop, context), None)
    summed = () if running is None else (running.reduce, running.update)
    if running is not None:
        late = (running.update, *late)
    row_values = _exchanged((*in_front, *mmas, *without(between, summed)), late, pipeline, context)
    if isinstance(row_values, _Unsupported):
        return row_values
    early = _while_loading(in_front, row_values, lets)
    between = without(own, (*early, *mmas, *summed, store))
    recomputed = _recomputed(early, between, row_values, lets)
    factors = (row_factor(op, late) for op in recomputed)
    factor = next((one for one in factors if one is not None and _can_wait(one, between)), None)
    row_values = tuple(tile for tile in row_values if not any(tile in buffers_written(op) for op in recomputed))
    found = PingPong(
        own_mmas=mmas,
        between=tuple(op for op in between if factor is None or op is not factor.op),
        store=store,
        late=late if factor is None else (factor.op, *late),
        second=second,
        row_values=row_values,
        running=running,
        recomputed=tuple(op for op in recomputed if factor is None or op is not factor.op),
        factor=factor,
        before=early,
    )
    because = why_unsuitable(found, loop, pipeline, context)
    return _Unsupported(because) if because else found


def _last_mma(own: tuple[Stmt, ...]) -> int:
    """The place of the last of the first GEMMs; -1 for none."""
    return max((place for place, op in enumerate(own) if isinstance(op, Gemm)), default=-1)


def _while_loading(
    in_front: tuple[Stmt, ...], row_values: tuple[Buffer, ...], lets: tuple[Let, ...]
) -> tuple[Stmt, ...]:
    """The statements in front of the GEMMs that may run before the values of the iteration before are received.

    They use nothing that is exchanged, no names of the iteration, and no results of statements that do.
    """
    behind: list[Stmt] = []
    for op in in_front:
        uses = not buffers_used(op).isdisjoint(row_values) or _use((op,), lets)
        if uses or any(depends(other, op) for other in behind):
            behind.append(op)
    return without(in_front, behind)


def _recomputed(
    early: tuple[Stmt, ...], between: tuple[Stmt, ...], row_values: tuple[Buffer, ...], lets: tuple[Let, ...]
) -> tuple[Stmt, ...]:
    """The statements that both warpgroups compute instead of exchanging results: values per row of exchanged ones.

    They are loops over rows of values that are exchanged, or that such a loop or a copy before it computes from them.
    What `early` statements write is a warpgroup's own, of its next iteration.
    """
    by_rows = [op for op in between if _is_by_rows(op) and not _use((op,), lets)]
    changed = written_in((*early, *between))
    found: list[Stmt] = []
    for tile in row_values:
        writers = [op for op in between if tile in buffers_written(op)]
        if len(writers) != 1 or writers[0] not in by_rows:
            continue
        carried = any(tile in buffers_read(op) for op in between[: between.index(writers[0]) + 1])
        needed = _needed(writers[0], between, by_rows)
        made = written_in(needed)
        given = read_in(needed) - made
        if not carried and given & changed <= frozenset(row_values) and not made & written_in(early):
            found += [op for op in needed if op not in found]
    return tuple(op for op in between if op in found)


def _can_wait(factor: RowFactor, between: tuple[Stmt, ...]) -> bool:
    """Whether a factor may be computed at the end of an iteration: nothing reads it, or changes its inputs, earlier."""
    needed = any(factor.tile in buffers_used(op) for op in between if op is not factor.op)
    behind = between[between.index(factor.op) + 1 :]
    return not needed and not any({factor.before, factor.after} & buffers_written(op) for op in behind)


def _needed(op: Stmt, between: tuple[Stmt, ...], by_rows: list[Stmt]) -> list[Stmt]:
    """The statement, and the statements over rows that are the only writers of its inputs, and overwrite them."""
    needed = [op]
    for tile in buffers_read(op):
        writers = [each for each in between if tile in buffers_written(each)]
        if len(writers) == 1 and writers[0] in by_rows and overwrites(writers[0], tile) and writers[0] is not op:
            needed = [*_needed(writers[0], between, by_rows), *needed]
    return needed


def _is_by_rows(op: Stmt) -> bool:
    """Whether a statement accesses only fragments of one value per row."""
    tiles = buffers_used(op)
    return isinstance(op, Copy | Parallel) and all(tile.rank == 1 and tile.scope is Scope.FRAGMENT for tile in tiles)


def _why_not_alone(
    own: tuple[Stmt, ...],
    store: Copy,
    mmas: tuple[Gemm, ...],
    lets: tuple[Let, ...],
    pipeline: Pipeline,
    context: Context,
) -> str:
    """Why one warpgroup cannot run its part of an iteration; empty if it can."""
    others = ((place, op) for place, op in enumerate(own[: _last_mma(own)]) if not isinstance(op, Gemm | Let))
    if any(depends(mma, op) for place, op in others for mma in own[:place] if isinstance(mma, Gemm)):
        return "another statement is between the GEMMs"
    if _use(mmas, lets):
        return "the GEMMs use values that the iteration names"
    if not all(map(_is_own, own)):
        return "an iteration does more than compute fragments"
    for op in mmas:
        split = split_of(op, 1)
        if split is None or op.c.buffer is not mmas[0].c.buffer:
            return "one warpgroup cannot compute a GEMM alone"
        if op.b.buffer not in pipeline.buffers or not op.transpose_b:
            return "the B operand of a GEMM is not loaded by the loop, with K along its rows"
    if [id(tile) for tile in pipeline.buffers] != [id(op.b.buffer) for op in mmas]:
        return "the first GEMMs do not read the loaded tiles in the order of the loads"
    written = written_in(context.launch.body)
    touched = {buffer for op in without(own, (store, *mmas)) for buffer in buffers_used(op)}
    changing = (tile for tile in touched if tile.scope is not Scope.GLOBAL or is_among(tile, written))
    if any(tile.scope is not Scope.FRAGMENT for tile in changing):
        return "an iteration reads more than fragments and tensors that nothing writes"
    return ""


def _is_own(op: Stmt) -> bool:
    """Whether one warpgroup can run the statement alone."""
    below = (place.stmt for place in places_of_operations((op,)) if place.path)
    return isinstance(op, _OWN) and all(isinstance(stmt, Parallel) for stmt in below)


def _exchanged(
    own: tuple[Stmt, ...], late: tuple[Stmt, ...], pipeline: Pipeline, context: Context
) -> tuple[Buffer, ...] | _Unsupported:
    """The values that an iteration passes to the next one, to `late` or to statements after the loop: one per row."""
    written: set[Buffer] = set()
    read_before: set[Buffer] = set()
    for op in own:
        reads = buffers_read(op) - ({op.c.buffer} if isinstance(op, Gemm) and op.clear else set())
        read_before |= reads - written
        written |= {buffer for buffer in buffers_written(op) if overwrites(op, buffer)}
    changed = written_in(own)
    others = outside_of(pipeline.body, context.launch.body)
    wanted = read_before.union(*map(buffers_read, late), *map(read_by_itself, others))
    row_values = tuple(tile for tile in context.launch.tiles if tile in wanted & changed)
    wide = next((tile for tile in row_values if tile.rank != 1), None)
    return (
        row_values
        if wide is None
        else _Unsupported(f"`{wide.name}` is live after an iteration, and has more than one value per row")
    )


def _use(ops: tuple[Stmt, ...], lets: tuple[Let, ...]) -> bool:
    """Whether the statements use values that are defined in the iteration."""
    names = {let.var for let in lets}
    return bool(names & variables(*all_expressions(ops)))


def _used_here_only(tile: Buffer, users: tuple[Stmt, ...], context: Context) -> bool:
    """Whether only these statements access the tile."""
    elsewhere = any(tile in used_by_itself(op) for op in without(context.statements, users))
    return tile.of is None and not viewed(context.launch, tile) and not elsewhere
