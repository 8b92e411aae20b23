"""Hopper: software pipelining of MMAs with other work."""

from collections.abc import Iterator

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_used, buffers_written, shared, variables, variables_of
from tile2cu.analysis.control import only_arm
from tile2cu.analysis.dependence import depends, keeps
from tile2cu.analysis.effects import own_effects
from tile2cu.analysis.prelude import is_iteration, walk_of
from tile2cu.analysis.regions import is_fixed
from tile2cu.analysis.uses import all_expressions, is_at_top, statements, without
from tile2cu.core.decisions import (
    LAYOUT,
    ON_WGMMA,
    PIPELINE,
    SCHEDULE,
    SHARED_LAYOUT,
    VECTOR,
    WARP_SPECIALISED,
    WARPS,
)
from tile2cu.core.expr import Load, walk
from tile2cu.core.program import Buffer, Copy, Gemm, If, Let, Loop, Parallel, Scope, Stmt
from tile2cu.core.schedule import MmaOverlap, Pipeline
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.launch.grid import equal_trip_counts
from tile2cu.rules.memory.storage import shared_tiles
from tile2cu.rules.mma.hopper import all_on_wgmma, warpgroups
from tile2cu.rules.schedule.candidates import scheduled
from tile2cu.rules.schedule.deferred_reductions import running_sums
from tile2cu.rules.schedule.pipeline import iterations_adjacent
from tile2cu.rules.schedule.register_budget import ATTENTION, blocks_per_sm, registers_of
from tile2cu.rules.schedule.rescale_factors import keeps_earlier, row_factor
from tile2cu.rules.schedule.warpgroup_trips import own_trips

_MASKED = ATTENTION.replace(
    "    T.copy(S, P)\n",
    "    if k * 64 + 63 >= m:\n"
    "        for i, j in T.Parallel(128, 64):\n"
    "            S[i, j] = T.if_then_else(k * 64 + j < m, S[i, j], -T.infinity('float32'))\n"
    "    T.copy(S, P)\n",
)
_SUMMED = _MASKED.replace(
    "T.copy(Z[0, 0]",
    'part = T.alloc_fragment((128,), "float32")\n'
    'total = T.alloc_fragment((128,), "float32")\n'
    "T.fill(total, 0)\n"
    "T.copy(Z[0, 0]",
).replace(
    "    T.copy(S, P)\n",
    "    T.reduce_sum(S, part, dim=1)\n"
    "    for i in T.Parallel(128):\n"
    "        total[i] = total[i] * 0.5 + part[i]\n"
    "    T.copy(S, P)\n",
)
_CAUSAL = """
Q_shared = T.alloc_shared((192, 128), "float16")
K_shared = T.alloc_shared((80, 128), "float16")
V_shared = T.alloc_shared((80, 128), "float16")
S = T.alloc_fragment((192, 80), "float32")
P = T.alloc_fragment((192, 80), "float16")
O = T.alloc_fragment((192, 128), "float32")
T.copy(Z[bx * 192, 0], Q_shared)
T.clear(O)
for k in T.Pipelined(T.ceildiv((bx + 1) * 192, 80), num_stages=2):
    T.copy(Z[k * 80, 0], K_shared)
    T.copy(Z[k * 80, 64], V_shared)
    for i, j in T.Parallel(192, 80):
        S[i, j] = T.if_then_else(bx * 192 + i >= k * 80 + j, 0, -T.infinity("float32"))
    T.gemm(Q_shared, K_shared, S, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
    for i, j in T.Parallel(192, 80):
        S[i, j] = T.exp2(S[i, j])
    T.copy(S, P)
    T.gemm(P, V_shared, O, policy=T.GemmWarpPolicy.FullRow)
T.copy(O, Y[bx * 192, 0])
"""
_SKIPPED = ATTENTION.replace("    ", "        ").replace("num_stages=2):\n", "num_stages=2):\n    if X[k, 0] != 0:\n")
_OVERLAP = "S concurrent with O of the previous iteration"
_MASK_APART = f"{_OVERLAP}; unmasked iterations in a loop of their own"
_DEFERRED = f"{_MASK_APART}; warp reduction of total after the loop"
_TRIPS = f"{_OVERLAP}; each warpgroup up to the last iteration with an unmasked element of its rows"
_PAIR = 2
_IN_USE_BY_BOTH = 2  # iterations in which a tile is in use that both groups of MMAs read


@rule(
    "pipeline.loop.overlap",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(LAYOUT, ON_WGMMA, PIPELINE, SHARED_LAYOUT, VECTOR, WARPS, WARP_SPECIALISED),
    absent=(SCHEDULE,),
    writes=(SCHEDULE,),
    source="measured on an H200: benchmarks/RESULTS.md, 8 to 10 % of attention, 28 % of a backward loop of three MMAs; "
    "unmasked iterations 1 to 2 %, the deferred reduction 1 % of attention, trip counts per warpgroup 1.4 to 2.1 % of "
    "causal attention with 192 queries per block",
    examples=(
        Example(ATTENTION, 8, "schedule", _OVERLAP, target="cuda:sm_90a"),
        Example(_SKIPPED, 10, "schedule", _OVERLAP, "cuda:sm_90a", 256),
        Example(_MASKED, 8, "schedule", _MASK_APART, target="cuda:sm_90a"),
        Example(_SUMMED, 11, "schedule", _DEFERRED, target="cuda:sm_90a"),
        Example(_CAUSAL, 9, "schedule", _TRIPS, target="cuda:sm_90a", threads=384),
    ),
)
def overlap(op: Loop, context: Context) -> Iterator[Decision]:
    """Of two groups of MMAs in an iteration, the second is in flight during the next iteration's first group.

    The statements between the MMAs run while the second group of the previous iteration is in flight, except for those
    that write its operands or access its results: these wait for it. Each MMA of the first group is awaited by the
    statements that depend on it, while the following ones are in flight. Each loaded tile has a pipeline of its own,
    and is released when the last MMA that reads it has ended. The next iteration is the next active one, where some are
    skipped (`rewrite.iterations.skipped`). Where the accumulator is rescaled by a power of the difference of two values
    per row, of which the user keeps the older one in most iterations, the rescale comes first after the wait, and warps
    in which all of them are equal skip it.

    Unmasked iterations get a loop of their own, without the mask's branch: the compiler moves nothing over a branch,
    and would put the wait for the second MMA directly after it, although all arithmetic of an iteration could overlap
    with that MMA. Where blocks differ in their trip counts, as under a causal mask, the branch stays: many have few
    iterations, one of them masked, so that fetching a second loop's instructions costs more. It stays, too, where
    warps vote after it on the rescale: the wait is after the vote then.

    Where there is no branch before the wait, or warps vote, the warp reduction of a running row sum is deferred past
    the loop. Each thread adds up its own elements, `total = total * factor + part`, from zero on; as that is linear
    and the factor is the same for all threads of a row, their partial sums add up to the row's sum.

    Under a causal mask each warpgroup has its own trip count, where its later iterations would change nothing: the
    maximum with minus infinity is the earlier one, which is finite from iteration 0 on, as that masks no row
    completely; the exponential is zero, and adds nothing. Rows past the end of the tensors that they are stored to
    need no iteration at all: rows are independent. The tiles of skipped iterations are released as they arrive, since
    the other warpgroups need them. MMA results are assumed finite, as for all masks.

    Gives: the schedule of an iteration, the mask of the loop without it, the sum, and the warpgroups' trip counts.
    """
    pipeline = context.facts.get(op, PIPELINE)
    if pipeline is None or not pipeline.producer:
        return
    if all_on_wgmma(op, context):
        candidates = (each for each in _candidates(pipeline) if _suits(each, op, pipeline, context))
        found = scheduled(candidates, op, pipeline, context)
        if isinstance(found, MmaOverlap):
            yield op, SCHEDULE, _refined(found, op, pipeline, context)


def _refined(found: MmaOverlap, op: Loop, pipeline: Pipeline, context: Context) -> MmaOverlap:
    """The schedule with the iterations, guards and sums that it allows."""
    found = replace(found, mask=_mask_apart(found, op, context), trips=own_trips(found, op, pipeline, context))
    if (found.factor is None and found.mask is None) or not iterations_adjacent(op, pipeline, context):
        return found  # a loop that runs again continues with sums of all threads
    sums = running_sums((*found.between, *found.late), op, context)
    by_warps = (each for each in sums if context.facts[each.reduce.src, LAYOUT].along(each.reduce.dim).warps == 1)
    return replace(found, running=next(by_warps, None))


def _mask_apart(found: MmaOverlap, op: Loop, context: Context) -> If | None:
    """The mask without which unmasked iterations have a loop of their own.

    A branch directly after the first MMA that changes only its result, on a condition that no tile or tensor decides.
    The loops evaluate it where an iteration begins: nothing before the branch changes it.
    """
    mask = found.parts[0][0] if found.parts[0] else None
    inside = only_arm(mask) if mask is not None and not found.factor else None
    if inside is None or not isinstance(mask, If):
        return None
    if not (is_at_top(op, context.launch) and equal_trip_counts(op, context)):
        return None
    if not keeps((*found.before, *found.mmas), of=own_effects(mask)):
        return None
    loads = any(isinstance(part, Load) for part in walk(mask.condition))
    alone = buffers_written(mask) == {found.first[0].c.buffer} and all(isinstance(stmt, Parallel) for stmt in inside)
    return mask if alone and not loads else None


def _candidates(pipeline: Pipeline) -> Iterator[MmaOverlap]:
    """The software pipelines of a loop's MMAs: the last ones as the second group, as few as possible."""
    lets = tuple(statements(pipeline.body, Let, below=False))
    if not all(is_fixed(let.value) for let in lets):
        return
    body = without(pipeline.body, lets)
    mmas = tuple(op for op in body if isinstance(op, Gemm))
    for count in range(len(mmas) - 1, 0, -1):
        found = replace(_grouped(body, mmas[:count], mmas[count:]), lets=lets)
        if _fits_parts(found, pipeline):
            yield from _scaling_first(found)
            yield found


def _grouped(body: tuple[Stmt, ...], first: tuple[Gemm, ...], second: tuple[Gemm, ...]) -> MmaOverlap:
    """The overlap of two groups of a body's MMAs.

    Statements that conflict with the second MMAs while these are in flight wait for them, and so do all that depend on
    such statements. Each other one waits for the MMAs of the first group that it depends on, unless one of these
    depends on it. Statements after the second MMAs come before them.
    """
    before = _needed(body, first)
    parts: tuple[list[Stmt], ...] = tuple([] for _ in first)
    late: list[Stmt] = []
    for op in body:
        if any(op is other for other in (*first, *second, *before)):
            continue
        if any(depends(op, other) for other in second) or any(depends(waiting, op) for waiting in late):
            late.append(op)
        else:
            sources = zip(first, parts, strict=True)
            awaited = (place for place, (mma, part) in enumerate(sources) if any(depends(x, op) for x in (mma, *part)))
            parts[max(awaited, default=0)].append(op)
    in_parts = tuple(map(tuple, parts))
    return MmaOverlap(before=before, first=first, parts=in_parts, late=tuple(late), second=second)


def _needed(body: tuple[Stmt, ...], first: tuple[Gemm, ...]) -> tuple[Stmt, ...]:
    """The statements before the first MMA, and those that a later one of its group depends on."""
    needed: list[Stmt] = []
    start = next(position for position, op in enumerate(body) if op is first[0])
    for position, op in reversed(tuple(enumerate(body))):
        later = [mma for mma in first if any(mma is other for other in body[position + 1 :])]
        mma = isinstance(op, Gemm)
        if position < start or (not mma and later and any(depends(op, other) for other in (*later, *needed))):
            needed.insert(0, op)
    return tuple(needed)


def _scaling_first(found: MmaOverlap) -> Iterator[MmaOverlap]:
    """The same schedule with a rescale of the second MMA's result first after the wait, if there is one.

    The statements between the MMAs then end with that factor, and the others, as the exponentials, wait as well: the
    other warpgroup's MMAs run meanwhile.
    """
    if len(found.mmas) != 2:
        return
    for position, op in enumerate(found.between):
        factor = row_factor(op, found.late)
        if factor is None or not any(keeps_earlier(stmt, factor) for stmt in found.between[:position]):
            continue
        if found.second[0].c.buffer in buffers_written(factor.scaled[0]):
            others = (*found.between[position + 1 :], *(late for late in found.late if late not in factor.scaled))
            parts = (found.between[: position + 1],)
            yield replace(found, parts=parts, late=(*factor.scaled, *others), factor=factor)


def _fits_parts(found: MmaOverlap, pipeline: Pipeline) -> bool:
    """Whether each thread runs the parts of an iteration independently, and MMAs alone read the loaded tiles.

    There are no block barriers between the parts, so that of shared memory they only read what no iteration writes. A
    tile that both groups read is in use for one iteration more.
    """
    if any(mma.a.buffer.scope is not Scope.FRAGMENT for mma in found.second):
        return False
    names = {let.var for let in found.lets}
    if any(variables_of(mma) & names for mma in found.second):
        return False  # it starts in the next iteration
    if not all(isinstance(load, Copy | Let) for load in pipeline.loads):
        return False
    first, second = ({id(tile) for mma in mmas for tile in _operands(mma)} for mmas in (found.first, found.second))
    loaded = set(map(id, pipeline.buffers))
    if not loaded <= first | second or not all(id(mma.b.buffer) in loaded for mma in found.mmas):
        return False
    if pipeline.stages <= _IN_USE_BY_BOTH and first & second & loaded:
        return False  # no stage is left for a load
    if pipeline.stages == 1 and not _loaded_in_order(first, pipeline):
        return False
    others = (*found.before, *found.between, *found.late)
    read = {id(tile.memory) for op in others for tile in shared(buffers_used(op))}
    written = any(shared(buffers_written(op)) for op in (*others, *found.mmas))
    return not written and not read & {id(tile.memory) for tile in pipeline.buffers}


def _loaded_in_order(first: set[int], pipeline: Pipeline) -> bool:
    """Whether an iteration loads the tiles of its first MMAs first.

    With one stage the producer waits for the second MMAs of the iteration before, which start after these.
    """
    in_first = [id(tile) in first for tile in pipeline.buffers]
    return in_first == sorted(in_first, reverse=True)


def _operands(mma: Gemm) -> tuple[Buffer, Buffer]:
    return mma.a.buffer, mma.b.buffer


def _suits(found: MmaOverlap, loop: Loop, pipeline: Pipeline, context: Context) -> bool:
    """Whether a loop gains by software pipelining, and can be pipelined where iterations are skipped.

    More than two MMAs have as many live results as the loop has, and take registers from other blocks per SM, which
    hide as much latency. Where iterations are skipped, nothing but the search of the next active one may be between
    them, and the start of the MMAs must not depend on values found in the search. Compilers move the wait for the
    second MMA up to the last branch: without a branch, other blocks per SM hide more latency, where a block is small.
    """
    if len(found.mmas) > _PAIR and not _is_alone(pipeline, context):
        return False
    if not is_iteration(loop, context.launch.body):
        return True
    walk = walk_of(context.launch, context.facts)
    if walk is None or walk.computing != (loop,) or found.lets:
        return False
    uniform = not variables(*all_expressions((*found.before, *found.mmas))) & {*walk.values}
    branches = found.factor is not None or any(isinstance(op, If) for op in found.between)
    return uniform and (branches or warpgroups(context.launch) > 1)


def _is_alone(pipeline: Pipeline, context: Context) -> bool:
    """Whether a block has an SM for itself."""
    stages = {id(tile): pipeline.stages for tile in pipeline.buffers}
    sizes = (
        (context.facts[tile, SHARED_LAYOUT].bytes, stages.get(id(tile), 1)) for tile in shared_tiles(context.launch)
    )
    shared_bytes = sum(size * count for size, count in sizes)
    return blocks_per_sm(registers_of(context.launch, context), shared_bytes, context) == 1
