"""Hopper: products that stay in flight while other work goes on, and the registers that this takes."""

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
from tile2cu.analysis.prelude import taken_turns
from tile2cu.analysis.regions import is_fixed
from tile2cu.core.decisions import (
    ALIASING,
    LAYOUT,
    MMA_OVERLAP,
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
from tile2cu.core.schedule import Dealt, FirstTiles, Overlap, Pipeline, PlainTurns, RegisterShares
from tile2cu.passes.register_operands import HELD
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.factors import keeps, row_factor
from tile2cu.rules.grid import equal_turns
from tile2cu.rules.hopper import on_wgmma, warpgroups
from tile2cu.rules.pipeline import is_at_top, turns_follow_alone
from tile2cu.rules.storage import ledger_of

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
_REGISTERS = 64 * 1024 // _WARPGROUP  # of a multiprocessor, for each thread of a warpgroup, or of one warp a scheduler
_SCHEDULERS = 4
_RESERVED_BYTES = 1024
_PRODUCER_REGISTERS = 24
_MOST_REGISTERS = 240  # what setmaxnreg gives in practice
_NAMED_REGISTERS = 255  # by an instruction
_PACKET_REGISTERS = 64  # of a loop whose turns the compiler interleaves: weights that are decoded, for one
OTHER_REGISTERS = 40  # addresses, counters and what statements compute, beside the tiles
_FEWEST_OTHERS = 24  # with which nvcc 13.0 compiles products in flight without a spill


@rule(
    "pipeline.loop.overlap",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(LAYOUT, PIPELINE, VECTOR, WARP_SPECIALISED),
    writes=(MMA_OVERLAP,),
    source=f"{_LESSONS}: 8 to 10 % of attention",
    examples=(
        Example(_ATTENTION, 8, "overlap", "S of a turn beside O of the turn before", target="cuda:sm_90a"),
        Example(_SKIPPED, 10, "overlap", "S of a turn beside O of the turn before", target="cuda:sm_90a", threads=256),
    ),
)
def overlap(op: Loop, context: Context) -> Iterator[Decision]:
    """Of two products in a turn, the second stays in flight under the next turn's first and what follows that.

    What lies between the products runs while the second one of the turn before is in flight, except for what writes
    its operand or touches its result: that waits for it. Each product's tile has a ring of its own. The next turn is
    the next that is taken, where some are skipped (`rewrite.iterations.skipped`). Where the result is
    scaled by a power of the difference of two values a row, of which the user keeps the older one in most turns, that
    comes first of what waits, and warps in which they are equal leave it out.

    Gives: what runs when.
    """
    pipeline = context.facts.get(op, PIPELINE)
    if pipeline is not None and pipeline.producer and on_wgmma(context) and turns_follow_alone(op, pipeline, context):
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
    examples=(Example(_MASKED, 8, "plain_turns", "turns that mask nothing of S", target="cuda:sm_90a"),),
)
def plain_turns(op: Loop, context: Context) -> Iterator[Decision]:
    """Where turns overlap, those that mask nothing have a loop of their own, without the branch around the mask.

    The compiler moves nothing over a branch: it would put the wait for the second product, which all of a turn's
    arithmetic could share its time with, directly behind it. Where blocks differ in their turns, as under a causal
    mask, the branch stays: many have few turns, one of which masks, so that fetching a second loop's instructions costs
    more. It stays, too, where warps vote behind it whether any of their rows scales: the wait is behind the vote then.

    Gives: the mask, a branch directly behind the first product that changes its result only, on a condition that no
    tile or tensor decides.
    """
    found = context.facts.get(op, MMA_OVERLAP)
    mask = found.between[0] if found is not None and found.between else None
    if found is None or found.factor or not isinstance(mask, If) or mask.orelse:
        return
    if not (is_at_top(op, context) and equal_turns(op, context)):
        return
    tile = found.first.c.buffer
    loads = any(isinstance(part, Load) for part in walk(mask.condition))
    if not loads and all(isinstance(stmt, Parallel) for stmt in mask.then) and buffers_written(mask) == {tile}:
        yield op, UNMASKED_ITERATIONS, PlainTurns(tile, mask)


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
    examples=(Example(_ATTENTION, 11, "held", "Q_shared", target="cuda:sm_90a"),),
)
def held_operand(op: Loop, context: Context) -> Iterator[Decision]:
    """Where turns overlap or are dealt, an operand that no turn changes is read once and stays in registers.

    The product then reads one tile of shared memory, not two. The operand is a tile that the producer loads before the
    turns and that nothing else reads; its registers have to fit. Where turns overlap, as many blocks as without it have
    to run side by side on a multiprocessor: a second one hides more.

    Gives: of the product, the tile. The launch is then decided anew with a fragment in its place.
    """
    first = context.facts.get(context.launch, PROLOGUE_LOADS)
    overlap = context.facts.get(op, MMA_OVERLAP)
    dealt = context.facts.get(op, PING_PONG)
    if first is None or (overlap is None and dealt is None):
        return
    spent = _registers_of(context.launch, context)
    room = share(context.launch) - _FEWEST_OTHERS - spent
    if dealt is not None:
        room = registers_left(dealt, context.launch)
    for product in (overlap.first,) if overlap is not None else reversed(dealt.products if dealt is not None else ()):
        copied = _copied_from(product, first, context)
        if copied is not None:
            yield product, REGISTER_OPERAND, copied.name  # as it was decided before, or as the user wrote it
        elif _can_be_held(product, first, context) and (words := _words_of(product, context)) <= room:
            if dealt is not None or _side_by_side(spent + words, context) == _side_by_side(spent, context):
                yield product, REGISTER_OPERAND, product.a.buffer.name
            return


def _side_by_side(tiles: int, context: Context) -> int:
    """How many blocks fit on a multiprocessor, with so many registers of a thread for tiles.

    Each of its four schedulers has a fourth of the registers, for whole warps; a block reserves 1 KB of shared memory.
    Source: CUDA C++ Programming Guide, "Compute Capabilities"; the rest is measured (docs/hopper.md).
    """
    registers = -(-(tiles + _FEWEST_OTHERS) // 8) * 8
    warps = context.launch.threads // context.target.warp_size + 1
    memory = ledger_of(context.launch, context, (), ()).total + _RESERVED_BYTES
    by_memory = (context.target.shared_limit + _RESERVED_BYTES) // memory
    return max(1, min(_SCHEDULERS * (_REGISTERS // registers) // warps, by_memory))


def _copied_from(product: Gemm, first: FirstTiles, context: Context) -> Buffer | None:
    """The tile of which a product's first operand is a copy in registers."""
    copies = (op for op in context.launch.body if isinstance(op, Copy) and op.dst.buffer is product.a.buffer)
    tiles = [load.dst.buffer for load in first.loads]
    return next((op.src.buffer for op in copies if op.src.buffer in tiles), None)


def _can_be_held(product: Gemm, first: FirstTiles, context: Context) -> bool:
    """Whether a product's first operand is a tile of 16 bits that is loaded once, and for this product alone."""
    tile = product.a.buffer
    readers = [stmt for stmt in context.statements if tile in read_by_itself(stmt)]
    loaded = any(load.dst.buffer is tile for load in first.loads)
    return loaded and readers == [product] and product.a.whole and not product.transpose_a and tile.dtype.bytes == 2


def _words_of(product: Gemm, context: Context) -> int:
    """What a thread spends on a product's first operand, in registers of 4 bytes."""
    tile = product.a.buffer
    warps = context.facts[product, WARPS]
    return prod(tile.static_shape) * tile.dtype.bytes // 4 // (_WARPGROUP * warps.m // 4)


@rule(
    "launch.hopper.register-shares",
    phase=Phase.PIPELINE,
    on=Launch,
    reads=(LAYOUT, VECTOR, WARP_SPECIALISED),
    writes=(REGISTER_SHARES,),
    source="PTX ISA, 'setmaxnreg'; CUDA C++ Programming Guide, 'Compute Capabilities': 64 K registers a multiprocessor",
    examples=(Example(_ATTENTION, "launch", "registers", "None", target="cuda:sm_90a"),),
)
def register_shares(launch: Launch, context: Context) -> Iterator[Decision]:
    """Where tiles of two or three warpgroups need more registers than an even share, the producer hands its own over.

    Then the producer is a whole warpgroup, since registers change hands by warpgroups.

    Gives: the registers of a producer's thread and of a consumer's; None for even shares.
    """
    if not on_wgmma(context):
        return
    groups = warpgroups(launch)
    even = _REGISTERS // (groups + 1)  # the producer's warp counts as much as a warpgroup
    if groups == 1 or _registers_of(launch, context) + OTHER_REGISTERS <= even:
        yield launch, REGISTER_SHARES, None
    else:
        yield launch, REGISTER_SHARES, RegisterShares(_PRODUCER_REGISTERS, share(launch))


def share(launch: Launch) -> int:
    """The most registers that a consumer's thread can have, in the eights in which they change hands.

    What changes hands is what the block was started with, an even share in eights: who asks for more waits for ever.
    """
    groups = warpgroups(launch)
    started_with = _REGISTERS // (groups + 1) // 8 * 8 * (groups + 1)
    return min((started_with - _PRODUCER_REGISTERS) // groups // 8 * 8, _MOST_REGISTERS)


def registers_left(dealt: Dealt, launch: Launch) -> int:
    """What a thread has left beside the products' results, the first one's also as operands, and held operands."""
    first, second = dealt.store.src.buffer, dealt.second.c.buffer
    held = {op.a.buffer for op in dealt.products if op.a.buffer.scope is Scope.FRAGMENT}
    own = prod(first.static_shape) * 3 // 2 + sum(prod(tile.static_shape) // 2 for tile in held)
    spent = own // _WARPGROUP + prod(second.static_shape) // launch.threads
    return share(launch) - OTHER_REGISTERS - spent


def fit(tiles: int, launch: Launch) -> bool:
    """Whether a thread has room for products in flight beside so many registers of tiles."""
    most = share(launch) if warpgroups(launch) > 1 else _NAMED_REGISTERS
    return tiles + _FEWEST_OTHERS <= most


def has_room(tile: Buffer, context: Context) -> bool:
    """Whether a thread has room for a second fragment like this one, beside the tiles and overlapping turns."""
    words: int = context.facts[tile, LAYOUT].words(tile.dtype.bytes)
    return fit(_registers_of(context.launch, context) + words, context.launch)


def _registers_of(launch: Launch, context: Context) -> int:
    """What a thread spends on register tiles, and on packets between memory and memory in the turns of a loop, in
    registers of 4 bytes.
    """
    tiles = [tile for tile in launch.tiles if tile.scope is Scope.FRAGMENT]
    layouts: list[tuple[Buffer, FragmentLayout | None]] = [(tile, context.facts.get(tile, LAYOUT)) for tile in tiles]
    packets = [
        context.facts[op, LAYOUT].registers
        for loop in context.statements
        if isinstance(loop, Loop)
        for op in walk_stmts(loop.body)
        if isinstance(op, Parallel) and context.facts[op, VECTOR] > 1
    ]
    tiles_words = sum(layout.words(tile.dtype.bytes) for tile, layout in layouts if layout is not None)
    return tiles_words + min(max(packets, default=0), _PACKET_REGISTERS)


def _overlap(pipeline: Pipeline, loop: Loop) -> Overlap | None:
    """How the iterations of a loop with two MMAs overlap; None where they cannot.

    What conflicts with the second MMA while it is outstanding waits for it, and so does all that depends on such. What
    stands behind the second MMA comes before it.
    """
    lets = tuple(op for op in pipeline.body if isinstance(op, Let))
    if not all(is_fixed(let.value) for let in lets):
        return None
    body = tuple(op for op in pipeline.body if not isinstance(op, Let))
    mmas = [place for place, op in enumerate(body) if isinstance(op, Gemm)]
    if len(mmas) != 2:
        return None
    (at, until), (first, second) = mmas, (body[place] for place in mmas)
    assert isinstance(first, Gemm) and isinstance(second, Gemm)
    late: list[Stmt] = []
    middle = (*body[at + 1 : until], *body[until + 1 :])
    for op in middle:
        if depends(op, second) or any(depends(waiting, op) for waiting in late):
            late.append(op)
    between = tuple(op for op in middle if op not in late)
    found = Overlap(before=body[:at], first=first, between=between, late=tuple(late), second=second, lets=lets)
    if not _fits_parts(found, pipeline) or not _is_legal(found, body, loop):
        return None
    return _scaling_first(found, body, loop)


def _is_legal(found: Overlap, body: tuple[Stmt, ...], loop: Loop) -> bool:
    return not broken_by(found.steps, body, loop)


def _scaling_first(found: Overlap, body: tuple[Stmt, ...], loop: Loop) -> Overlap:
    """The same; where the second product's result is scaled by a factor of the rows, first of all that waits for it.

    What lies between the products then ends with that factor, and what else would, as the exponentials, waits as well:
    the other warpgroup's products run meanwhile.
    """
    for place, op in enumerate(found.between):
        factor = row_factor(op, found.late)
        if factor is None or not any(keeps(stmt, factor) for stmt in found.between[:place]):
            continue
        if found.second.c.buffer not in buffers_written(factor.scaled[0]):
            continue
        others = (*found.between[place + 1 :], *(late for late in found.late if late not in factor.scaled))
        scaling = replace(found, between=found.between[: place + 1], late=(*factor.scaled, *others), factor=factor)
        if _is_legal(scaling, body, loop):
            return scaling
    return found


def _fits_parts(found: Overlap, pipeline: Pipeline) -> bool:
    """Whether a thread does the parts of an iteration by itself, and each MMA reads one tile that is loaded.

    Between the parts stand no barriers of the block, so that they leave shared memory alone.
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


def _suits(found: Overlap, loop: Loop, pipeline: Pipeline, context: Context) -> bool:
    """Whether turns of which some are skipped can overlap, and gain by it; True where none are.

    What starts the products asks for nothing that is found on the way to a turn. Compilers move the wait for the second
    product up to the last branch: without one, other blocks of a multiprocessor hide more, where a block is small.
    """
    walk = taken_turns(loop, pipeline, context.launch.body)
    if walk is None:
        return True
    if found.lets:
        return False
    starts = walk_stmts((*found.before, found.first, found.second))
    alike = not any(var in walk.values for op in starts for var in variables(*expressions(op)))
    branches = found.factor is not None or any(isinstance(op, If) for op in found.between)
    return alike and (branches or warpgroups(context.launch) > 1)


def _shared_tiles(op: Stmt, *, written: bool = False) -> bool:
    touched = buffers_written(op) if written else buffers_used(op)
    return any(buffer.scope is Scope.SHARED for buffer in touched)
