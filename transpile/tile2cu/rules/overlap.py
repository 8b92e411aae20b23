"""Hopper: software pipelining of MMAs with other work, and the registers that it takes."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from tile2cu.analysis.accesses import (
    buffers_used,
    buffers_written,
    expressions,
    read_by_itself,
    variables,
)
from tile2cu.analysis.dependence import broken_by, depends
from tile2cu.analysis.prelude import walk_to_active
from tile2cu.analysis.regions import is_fixed
from tile2cu.core.decisions import (
    ALIASING,
    LAYOUT,
    MMA_OVERLAP,
    ON_WGMMA,
    PERSISTENT,
    PING_PONG,
    PIPELINE,
    PROLOGUE_LOADS,
    REGISTER_OPERAND,
    REGISTER_SHARES,
    SHARED_LAYOUT,
    STAGES,
    UNMASKED_ITERATIONS,
    VECTOR,
    WARP_SPECIALISED,
    WARPS,
)
from tile2cu.core.expr import Load, walk
from tile2cu.core.layout import FragmentLayout
from tile2cu.core.program import Buffer, Copy, Gemm, If, Launch, Let, Loop, Parallel, Scope, Stmt, walk_stmts
from tile2cu.core.schedule import MmaOverlap, PingPong, Pipeline, PrologueLoads, RegisterShares, UnmaskedIterations
from tile2cu.passes.register_operands import HELD
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.grid import equal_trip_counts
from tile2cu.rules.hopper import all_on_wgmma, is_specialised, warpgroups
from tile2cu.rules.pipeline import is_at_top, iterations_adjacent
from tile2cu.rules.rescale_factors import keeps, row_factor
from tile2cu.rules.storage import shared_budget_of

_ATTENTION = """
Q_shared = T.alloc_shared((128, 64), "float16")
K_shared = T.alloc_shared((64, 64), "float16")
V_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((128, 64), "float32")
P = T.alloc_fragment((128, 64), "float16")
O = T.alloc_fragment((128, 64), "float32")
T.copy(Z[0, 0], Q_shared)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], K_shared)
    T.copy(Z[k * 64, 64], V_shared)
    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
    T.copy(S, P)
    T.gemm(P, V_shared, O)
"""
_MASKED = _ATTENTION.replace(
    "    T.copy(S, P)\n",
    "    if k * 64 + 63 >= m:\n"
    "        for i, j in T.Parallel(128, 64):\n"
    "            S[i, j] = T.if_then_else(k * 64 + j < m, S[i, j], -T.infinity('float32'))\n"
    "    T.copy(S, P)\n",
)
_SKIPPED = _ATTENTION.replace("    ", "        ").replace("num_stages=2):\n", "num_stages=2):\n    if X[k, 0] != 0:\n")
_LESSONS = "measured on an H200: benchmarks/RESULTS.md"
_WARPGROUP = 128
_REGISTERS = 64 * 1024 // _WARPGROUP  # of an SM, per thread of a warpgroup, or of one warp per scheduler
_SCHEDULERS = 4
_RESERVED_BYTES = 1024
_PRODUCER_REGISTERS = 24
_MOST_REGISTERS = 240  # the most that setmaxnreg grants
_NAMED_REGISTERS = 255  # by an instruction
_VECTOR_REGISTERS = 64  # of a loop whose iterations the compiler interleaves, as one that decodes weights
OTHER_REGISTERS = 40  # addresses, counters and temporaries, besides the fragments
_FEWEST_OTHERS = 24  # with which nvcc 13.0 compiles MMAs in flight without a spill


@rule(
    "pipeline.loop.overlap",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(LAYOUT, ON_WGMMA, PIPELINE, VECTOR, WARP_SPECIALISED),
    writes=(MMA_OVERLAP,),
    source=f"{_LESSONS}: 8 to 10 % of attention",
    examples=(
        Example(_ATTENTION, 8, "mma_overlap", "S concurrent with O of the previous iteration", target="cuda:sm_90a"),
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
            and fit(_registers_of(context.launch, context), context.launch)
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


@rule(
    HELD,
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(
        ALIASING,
        LAYOUT,
        MMA_OVERLAP,
        PERSISTENT,
        PING_PONG,
        PIPELINE,
        PROLOGUE_LOADS,
        SHARED_LAYOUT,
        STAGES,
        VECTOR,
        WARPS,
        WARP_SPECIALISED,
    ),
    writes=(REGISTER_OPERAND,),
    source=f"{_LESSONS}: 1 to 4 % of attention",
    examples=(Example(_ATTENTION, 11, "register_operand", "Q_shared", target="cuda:sm_90a"),),
)
def register_operand(op: Loop, context: Context) -> Iterator[Decision]:
    """Where MMAs are software-pipelined or warpgroups alternate, a loop-invariant A operand is read once.

    The MMA then reads one tile of shared memory, not two. The operand is a tile that the producer loads before the
    iterations and that nothing else reads; its registers have to fit. With software-pipelined MMAs the occupancy must
    stay the same: a second block per SM hides more latency.

    Gives: for the MMA, the tile. All decisions are then made again with a fragment in its place.
    """
    first = context.facts.get(context.launch, PROLOGUE_LOADS)
    overlap = context.facts.get(op, MMA_OVERLAP)
    alternating = context.facts.get(op, PING_PONG)
    if first is None or (overlap is None and alternating is None):
        return
    spent = _registers_of(context.launch, context)
    room = share(context.launch) - _FEWEST_OTHERS - spent
    if alternating is not None:
        room = registers_left(alternating, context.launch)
    for mma in (
        (overlap.first,) if overlap is not None else reversed(alternating.mmas if alternating is not None else ())
    ):
        copied = _copied_from(mma, first, context)
        if copied is not None:
            yield mma, REGISTER_OPERAND, copied.name  # as decided before, or as the user wrote it
        elif _can_be_in_registers(mma, first, context) and (words := _words_of(mma, context)) <= room:
            if alternating is not None or _blocks_per_sm(spent + words, context) == _blocks_per_sm(spent, context):
                yield mma, REGISTER_OPERAND, mma.a.buffer.name
            return


def _blocks_per_sm(tiles: int, context: Context) -> int:
    """Blocks per SM with so many registers per thread for fragments.

    Each of the SM's four schedulers has a fourth of the registers, for whole warps; a block reserves 1 KB of shared
    memory. Source: CUDA C++ Programming Guide, "Compute Capabilities"; the rest is measured (docs/hopper.md).
    """
    registers = -(-(tiles + _FEWEST_OTHERS) // 8) * 8
    warps = context.launch.threads // context.target.warp_size + 1
    memory = shared_budget_of(context.launch, context, (), ()).total + _RESERVED_BYTES
    by_memory = (context.target.shared_limit + _RESERVED_BYTES) // memory
    return max(1, min(_SCHEDULERS * (_REGISTERS // registers) // warps, by_memory))


def _copied_from(mma: Gemm, first: PrologueLoads, context: Context) -> Buffer | None:
    """The tile of which an MMA's A operand is a copy in registers."""
    copies = (op for op in context.launch.body if isinstance(op, Copy) and op.dst.buffer is mma.a.buffer)
    tiles = [load.dst.buffer for load in first.loads]
    return next((op.src.buffer for op in copies if op.src.buffer in tiles), None)


def _can_be_in_registers(mma: Gemm, first: PrologueLoads, context: Context) -> bool:
    """Whether an MMA's A operand is a 16-bit tile that is loaded once, and for this MMA alone."""
    tile = mma.a.buffer
    readers = [stmt for stmt in context.statements if tile in read_by_itself(stmt)]
    loaded = any(load.dst.buffer is tile for load in first.loads)
    return loaded and readers == [mma] and mma.a.whole and not mma.transpose_a and tile.dtype.bytes == 2


def _words_of(mma: Gemm, context: Context) -> int:
    """Registers of 4 bytes per thread of an MMA's A operand."""
    tile = mma.a.buffer
    warps = context.facts[mma, WARPS]
    return prod(tile.static_shape) * tile.dtype.bytes // 4 // (_WARPGROUP * warps.m // 4)


@rule(
    "launch.hopper.register-shares",
    phase=Phase.PIPELINE,
    on=Launch,
    reads=(LAYOUT, VECTOR, WARP_SPECIALISED),
    writes=(REGISTER_SHARES,),
    source="PTX ISA, 'setmaxnreg'; CUDA C++ Programming Guide, 'Compute Capabilities': 64 K registers per SM",
    examples=(Example(_ATTENTION, "launch", "registers", "None", target="cuda:sm_90a"),),
)
def register_shares(launch: Launch, context: Context) -> Iterator[Decision]:
    """Where fragments of two or three warpgroups need more registers than an even share, the producer gives up its own.

    The producer is then a whole warpgroup, since setmaxnreg works on warpgroups.

    Gives: the registers per thread of the producer and of a consumer; None for even shares.
    """
    if not (is_specialised(context) and context.target.wgmma):
        return
    groups = warpgroups(launch)
    even = _REGISTERS // (groups + 1)  # the registers of a producer warp count as those of a warpgroup
    if groups == 1 or _registers_of(launch, context) + OTHER_REGISTERS <= even:
        yield launch, REGISTER_SHARES, None
    else:
        yield launch, REGISTER_SHARES, RegisterShares(_PRODUCER_REGISTERS, share(launch))


def share(launch: Launch) -> int:
    """The most registers per consumer thread, a multiple of 8, as setmaxnreg takes them.

    All shares add up to the registers that the block starts with, an even multiple of 8 per thread: a setmaxnreg.inc
    beyond that would wait forever.
    """
    groups = warpgroups(launch)
    started_with = _REGISTERS // (groups + 1) // 8 * 8 * (groups + 1)
    return min((started_with - _PRODUCER_REGISTERS) // groups // 8 * 8, _MOST_REGISTERS)


def registers_left(alternating: PingPong, launch: Launch) -> int:
    """Registers per thread left by the accumulators, their copies as operands, and register-resident operands."""
    first, second = alternating.store.src.buffer, alternating.second.c.buffer
    held = {op.a.buffer for op in alternating.mmas if op.a.buffer.scope is Scope.FRAGMENT}
    own = prod(first.static_shape) * 3 // 2 + sum(prod(tile.static_shape) // 2 for tile in held)
    spent = own // _WARPGROUP + prod(second.static_shape) // launch.threads
    return share(launch) - OTHER_REGISTERS - spent


def fit(tiles: int, launch: Launch) -> bool:
    """Whether a thread has registers for MMAs in flight besides so many registers of fragments."""
    most = share(launch) if warpgroups(launch) > 1 else _NAMED_REGISTERS
    return tiles + _FEWEST_OTHERS <= most


def has_room(tile: Buffer, context: Context) -> bool:
    """Whether a thread has registers for a second fragment like this one, with MMAs in flight."""
    words: int = context.facts[tile, LAYOUT].words(tile.dtype.bytes)
    return fit(_registers_of(context.launch, context) + words, context.launch)


def _registers_of(launch: Launch, context: Context) -> int:
    """Registers of 4 bytes per thread of fragments, and of vectors between memory and memory in loops."""
    tiles = [tile for tile in launch.tiles if tile.scope is Scope.FRAGMENT]
    layouts: list[tuple[Buffer, FragmentLayout | None]] = [(tile, context.facts.get(tile, LAYOUT)) for tile in tiles]
    vectors = [
        context.facts[op, LAYOUT].registers
        for loop in context.statements
        if isinstance(loop, Loop)
        for op in walk_stmts(loop.body)
        if isinstance(op, Parallel) and context.facts[op, VECTOR] > 1
    ]
    tiles_words = sum(layout.words(tile.dtype.bytes) for tile, layout in layouts if layout is not None)
    return tiles_words + min(max(vectors, default=0), _VECTOR_REGISTERS)


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
