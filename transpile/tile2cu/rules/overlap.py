"""Hopper: software pipelining of MMAs with other work."""

from collections.abc import Iterator
from dataclasses import replace

from tile2cu.analysis.accesses import (
    buffers_used,
    buffers_written,
    expressions,
    variables,
)
from tile2cu.analysis.dependence import broken_by, depends
from tile2cu.analysis.prelude import walk_to_active
from tile2cu.analysis.regions import is_fixed
from tile2cu.core.decisions import (
    LAYOUT,
    MMA_OVERLAP,
    ON_WGMMA,
    PIPELINE,
    UNMASKED_ITERATIONS,
    VECTOR,
    WARP_SPECIALISED,
)
from tile2cu.core.expr import Load, walk
from tile2cu.core.program import Copy, Gemm, If, Let, Loop, Parallel, Scope, Stmt, walk_stmts
from tile2cu.core.schedule import MmaOverlap, Pipeline, UnmaskedIterations
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.grid import equal_trip_counts
from tile2cu.rules.hopper import all_on_wgmma, warpgroups
from tile2cu.rules.pipeline import is_at_top, iterations_adjacent
from tile2cu.rules.register_budget import ATTENTION, fit, registers_of
from tile2cu.rules.rescale_factors import keeps, row_factor

_MASKED = ATTENTION.replace(
    "    T.copy(S, P)\n",
    "    if k * 64 + 63 >= m:\n"
    "        for i, j in T.Parallel(128, 64):\n"
    "            S[i, j] = T.if_then_else(k * 64 + j < m, S[i, j], -T.infinity('float32'))\n"
    "    T.copy(S, P)\n",
)
_SKIPPED = ATTENTION.replace("    ", "        ").replace("num_stages=2):\n", "num_stages=2):\n    if X[k, 0] != 0:\n")
_LESSONS = "measured on an H200: benchmarks/RESULTS.md"


@rule(
    "pipeline.loop.overlap",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(LAYOUT, ON_WGMMA, PIPELINE, VECTOR, WARP_SPECIALISED),
    writes=(MMA_OVERLAP,),
    source=f"{_LESSONS}: 8 to 10 % of attention",
    examples=(
        Example(ATTENTION, 8, "mma_overlap", "S concurrent with O of the previous iteration", target="cuda:sm_90a"),
        Example(_SKIPPED, 10, "mma_overlap", "S concurrent with O of the previous iteration", "cuda:sm_90a", 256),
    ),
)
def overlap(op: Loop, context: Context) -> Iterator[Decision]:
    """Of two MMAs in an iteration, the second is in flight during the next iteration's first MMA.

    The statements between the MMAs run while the second MMA of the previous iteration is in flight, except for those
    that write its operand or access its result: these wait for it. Each MMA's tile has a pipeline of its own. The next
    iteration is the next active one, where some are skipped (`rewrite.iterations.skipped`). Where the accumulator is
    rescaled by a power of the difference of two values per row, of which the user keeps the older one in most
    iterations, the rescale comes first after the wait, and warps in which all of them are equal skip it.

    Gives: the schedule of an iteration.
    """
    pipeline = context.facts.get(op, PIPELINE)
    if pipeline is None or not pipeline.producer:
        return
    if all_on_wgmma(op, context) and iterations_adjacent(op, pipeline, context):
        found = _overlap(pipeline, op)
        if (
            found is not None
            and _suits(found, op, pipeline, context)
            and fit(registers_of(context.launch, context), context.launch)
        ):
            yield op, MMA_OVERLAP, found


@rule(
    "pipeline.loop.interior-iterations",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(MMA_OVERLAP,),
    writes=(UNMASKED_ITERATIONS,),
    source=f"{_LESSONS}: 1 to 2 % of attention",
    examples=(Example(_MASKED, 8, "unmasked_iterations", "iterations without a mask of S", target="cuda:sm_90a"),),
)
def unmasked_iterations(op: Loop, context: Context) -> Iterator[Decision]:
    """In a loop with software-pipelined MMAs, unmasked iterations get a loop of their own, without the mask's branch.

    The compiler moves nothing over a branch: it would put the wait for the second MMA directly after it, although all
    arithmetic of an iteration could overlap with that MMA. Where blocks differ in their trip counts, as under a causal
    mask, the branch stays: many have few iterations, one of them masked, so that fetching a second loop's instructions
    costs more. It stays, too, where warps vote after it on the rescale: the wait is after the vote then.

    Gives: the mask, a branch directly after the first MMA that changes only its result, on a condition that no tile or
    tensor decides.
    """
    found = context.facts.get(op, MMA_OVERLAP)
    mask = found.between[0] if found is not None and found.between else None
    if found is None or found.factor or not isinstance(mask, If) or mask.orelse:
        return
    if not (is_at_top(op, context) and equal_trip_counts(op, context)):
        return
    tile = found.first.c.buffer
    loads = any(isinstance(part, Load) for part in walk(mask.condition))
    if not loads and all(isinstance(stmt, Parallel) for stmt in mask.then) and buffers_written(mask) == {tile}:
        yield op, UNMASKED_ITERATIONS, UnmaskedIterations(tile, mask)


def _overlap(pipeline: Pipeline, loop: Loop) -> MmaOverlap | None:
    """The software pipeline of a loop with two MMAs; None where there is none.

    Statements that conflict with the second MMA while it is in flight wait for it, and so do all that depend on these.
    Statements after the second MMA come before it.
    """
    lets = tuple(op for op in pipeline.body if isinstance(op, Let))
    if not all(is_fixed(let.value) for let in lets):
        return None
    body = tuple(op for op in pipeline.body if not isinstance(op, Let))
    at_mmas = [position for position, op in enumerate(body) if isinstance(op, Gemm)]
    if len(at_mmas) != 2:
        return None
    (at, until), (first, second) = at_mmas, (body[position] for position in at_mmas)
    assert isinstance(first, Gemm) and isinstance(second, Gemm)
    late: list[Stmt] = []
    middle = (*body[at + 1 : until], *body[until + 1 :])
    for op in middle:
        if depends(op, second) or any(depends(waiting, op) for waiting in late):
            late.append(op)
    between = tuple(op for op in middle if op not in late)
    found = MmaOverlap(before=body[:at], first=first, between=between, late=tuple(late), second=second, lets=lets)
    if not _fits_parts(found, pipeline) or not _is_legal(found, body, loop):
        return None
    return _scaling_first(found, body, loop)


def _is_legal(found: MmaOverlap, body: tuple[Stmt, ...], loop: Loop) -> bool:
    return not broken_by(found.steps, body, loop)


def _scaling_first(found: MmaOverlap, body: tuple[Stmt, ...], loop: Loop) -> MmaOverlap:
    """The same schedule, with a rescale of the second MMA's result first after the wait, if there is one.

    The statements between the MMAs then end with that factor, and the others, as the exponentials, wait as well: the
    other warpgroup's MMAs run meanwhile.
    """
    for position, op in enumerate(found.between):
        factor = row_factor(op, found.late)
        if factor is None or not any(keeps(stmt, factor) for stmt in found.between[:position]):
            continue
        if found.second.c.buffer not in buffers_written(factor.scaled[0]):
            continue
        others = (*found.between[position + 1 :], *(late for late in found.late if late not in factor.scaled))
        scaling = replace(found, between=found.between[: position + 1], late=(*factor.scaled, *others), factor=factor)
        if _is_legal(scaling, body, loop):
            return scaling
    return found


def _fits_parts(found: MmaOverlap, pipeline: Pipeline) -> bool:
    """Whether each thread runs the parts of an iteration independently, and each MMA reads one loaded tile.

    There are no block barriers between the parts, so that they must not access shared memory.
    """
    if found.second.a.buffer.scope is not Scope.FRAGMENT:
        return False
    if variables(*expressions(found.second)) & {let.var for let in found.lets}:
        return False  # it starts in the next iteration
    if not all(isinstance(load, Copy | Let) for load in pipeline.loads):
        return False
    tiles = pipeline.buffers
    if {*map(id, tiles)} != {id(found.first.b.buffer), id(found.second.b.buffer)}:
        return False
    others = (*found.before, *found.between, *found.late)
    return (
        len(tiles) == 2 and not any(_shared_tiles(op) for op in others) and not _shared_tiles(found.first, written=True)
    )


def _suits(found: MmaOverlap, loop: Loop, pipeline: Pipeline, context: Context) -> bool:
    """Whether a loop with skipped iterations can be software-pipelined, and gains by it; True where none are skipped.

    The start of the MMAs must not depend on values found in the search of the next active iteration. Compilers move the
    wait for the second MMA up to the last branch: without a branch, other blocks per SM hide more latency, where a
    block is small.
    """
    walk = walk_to_active(loop, pipeline, context.launch.body)
    if walk is None:
        return True
    if found.lets:
        return False
    starts = walk_stmts((*found.before, found.first, found.second))
    uniform = not any(var in walk.values for op in starts for var in variables(*expressions(op)))
    branches = found.factor is not None or any(isinstance(op, If) for op in found.between)
    return uniform and (branches or warpgroups(context.launch) > 1)


def _shared_tiles(op: Stmt, *, written: bool = False) -> bool:
    touched = buffers_written(op) if written else buffers_used(op)
    return any(buffer.scope is Scope.SHARED for buffer in touched)
