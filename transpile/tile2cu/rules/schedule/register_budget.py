"""Hopper: registers per thread: what MMAs in flight leave, and what producers give to consumers."""

from collections.abc import Iterator
from math import prod

from tile2cu.analysis.uses import pipelined_loops, readers, statements
from tile2cu.core.decisions import (
    ALIASING,
    LAYOUT,
    PERSISTENT,
    PIPELINE,
    PROLOGUE_LOADS,
    REGISTER_OPERAND,
    REGISTER_SHARES,
    SCHEDULE,
    SHARED_LAYOUT,
    STAGES,
    VECTOR,
    WARP_SPECIALISED,
    WARPS,
)
from tile2cu.core.layout import FragmentLayout
from tile2cu.core.program import Buffer, Copy, Gemm, Launch, Loop, Parallel, Scope
from tile2cu.core.schedule import MmaOverlap, PingPong, PrologueLoads, RegisterShares
from tile2cu.passes.register_operands import HELD
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.memory.storage import shared_budget_of
from tile2cu.rules.mma.hopper import is_specialised, warpgroups

ATTENTION = """
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
_LESSONS = "measured on an H200: benchmarks/RESULTS.md"
_WARPGROUP = 128
_REGISTERS = 64 * 1024 // _WARPGROUP  # of an SM, per thread of a warpgroup, or of one warp per scheduler
_SCHEDULERS = 4
_RESERVED_BYTES = 1024
_PRODUCER_REGISTERS = 24
_GATHERING_REGISTERS = 40  # of a producer whose threads hold where their rows are
_MOST_REGISTERS = 240  # the most that setmaxnreg grants
_NAMED_REGISTERS = 255  # by an instruction
_VECTOR_REGISTERS = 64  # of a loop whose iterations the compiler interleaves, as one that decodes weights
OTHER_REGISTERS = 40  # addresses, counters and temporaries, besides the fragments
_FEWEST_OTHERS = 24  # with which nvcc 13.0 compiles MMAs in flight without a spill


@rule(
    HELD,
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(
        ALIASING,
        LAYOUT,
        PERSISTENT,
        PIPELINE,
        PROLOGUE_LOADS,
        SCHEDULE,
        SHARED_LAYOUT,
        STAGES,
        VECTOR,
        WARPS,
        WARP_SPECIALISED,
    ),
    writes=(REGISTER_OPERAND,),
    source=f"{_LESSONS}: 1 to 4 % of attention",
    examples=(Example(ATTENTION, 11, "register_operand", "Q_shared", target="cuda:sm_90a"),),
)
def register_operand(op: Loop, context: Context) -> Iterator[Decision]:
    """Where MMAs are software-pipelined or warpgroups alternate, a loop-invariant A operand is read once.

    The MMA then reads one tile of shared memory, not two. The operand is a tile that the producer loads before the
    iterations and that nothing else reads; its registers have to fit. With software-pipelined MMAs the occupancy must
    stay the same: a second block per SM hides more latency.

    Gives: for the MMA, the tile. All decisions are then made again with a fragment in its place.
    """
    first = context.facts.get(context.launch, PROLOGUE_LOADS)
    found = context.facts.get(op, SCHEDULE)
    if first is None or not isinstance(found, MmaOverlap | PingPong):
        return
    spent = registers_of(context.launch, context)
    if alternating := isinstance(found, PingPong):
        mmas, room = found.own_mmas[::-1], registers_left(found, context.launch)
    else:
        mmas, room = found.first, share(context.launch) - _FEWEST_OTHERS - spent
    for mma in mmas:
        copied = _copied_from(mma, first, context)
        if copied is not None:
            yield mma, REGISTER_OPERAND, copied.name  # as decided before, or as the user wrote it
        elif _can_be_in_registers(mma, first, context) and (words := _words_of(mma, context)) <= room:
            if alternating or _blocks_per_sm(spent + words, context) == _blocks_per_sm(spent, context):
                yield mma, REGISTER_OPERAND, mma.a.buffer.name
            return


def _blocks_per_sm(tiles: int, context: Context) -> int:
    """Blocks per SM with so many registers per thread for fragments."""
    return blocks_per_sm(tiles, shared_budget_of(context.launch, context, (), ()).total, context)


def blocks_per_sm(tiles: int, shared: int, context: Context) -> int:
    """Blocks per SM with so many registers per thread for fragments, and so many bytes of shared memory per block.

    Each of the SM's four schedulers has a fourth of the registers, for whole warps; a block reserves 1 KB of shared
    memory. Source: CUDA C++ Programming Guide, "Compute Capabilities"; the rest is measured (docs/hopper.md).
    """
    registers = -(-(tiles + _FEWEST_OTHERS) // 8) * 8
    warps = context.launch.threads // context.target.warp_size + 1
    by_memory = (context.target.shared_limit + _RESERVED_BYTES) // (shared + _RESERVED_BYTES)
    return max(1, min(_SCHEDULERS * (_REGISTERS // registers) // warps, by_memory))


def _copied_from(mma: Gemm, first: PrologueLoads, context: Context) -> Buffer | None:
    """The tile of which an MMA's A operand is a copy in registers."""
    copies = (op for op in statements(context.launch.body, Copy, below=False) if op.dst.buffer is mma.a.buffer)
    tiles = [load.dst.buffer for load in first.loads]
    return next((op.src.buffer for op in copies if op.src.buffer in tiles), None)


def _can_be_in_registers(mma: Gemm, first: PrologueLoads, context: Context) -> bool:
    """Whether an MMA's A operand is a 16-bit tile that is loaded once, and for this MMA alone."""
    tile = mma.a.buffer
    alone = readers(context.launch.body, tile) == [mma] and any(load.dst.buffer is tile for load in first.loads)
    return alone and mma.a.whole and not mma.transpose_a and tile.dtype.bytes == 2


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
    examples=(Example(ATTENTION, "launch", "registers", "None", target="cuda:sm_90a"),),
)
def register_shares(launch: Launch, context: Context) -> Iterator[Decision]:
    """Where fragments of two or three warpgroups need more registers than an even share, the producer gives up its own.

    The producer is then a whole warpgroup, since setmaxnreg works on warpgroups. So it is where it gathers rows.

    Gives: the registers per thread of the producer and of a consumer; None for even shares.
    """
    if not (is_specialised(context) and context.target.wgmma):
        return
    groups = warpgroups(launch)
    even = _REGISTERS // (groups + 1)  # the registers of a producer warp count as those of a warpgroup
    if groups == 1 or (registers_of(launch, context) + OTHER_REGISTERS <= even and not _gathers(launch)):
        yield launch, REGISTER_SHARES, None
    else:
        yield launch, REGISTER_SHARES, RegisterShares(_of_producer(launch), share(launch))


def share(launch: Launch) -> int:
    """The most registers per consumer thread, a multiple of 8, as setmaxnreg takes them.

    All shares add up to the registers that the block starts with, an even multiple of 8 per thread: a setmaxnreg.inc
    beyond that would wait forever.
    """
    groups = warpgroups(launch)
    started_with = _REGISTERS // (groups + 1) // 8 * 8 * (groups + 1)
    return min((started_with - _of_producer(launch)) // groups // 8 * 8, _MOST_REGISTERS)


def _of_producer(launch: Launch) -> int:
    """The registers per thread that a producer keeps."""
    return _GATHERING_REGISTERS if _gathers(launch) else _PRODUCER_REGISTERS


def _gathers(launch: Launch) -> bool:
    """Whether a producer, if there is one, gathers rows."""
    return any(load.row is not None for loop in pipelined_loops(launch) for load in statements(loop.body, Copy))


def registers_left(alternating: PingPong, launch: Launch) -> int:
    """Registers per thread left by the accumulators, their copies as operands, and register-resident operands."""
    first, second = alternating.store.src.buffer, alternating.second.c.buffer
    held = {op.a.buffer for op in alternating.own_mmas if op.a.buffer.scope is Scope.FRAGMENT}
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
    return fit(registers_of(context.launch, context) + words, context.launch)


def registers_of(launch: Launch, context: Context) -> int:
    """Registers of 4 bytes per thread of fragments, and of vectors between memory and memory in loops."""
    tiles = [tile for tile in launch.tiles if tile.scope is Scope.FRAGMENT]
    layouts: list[tuple[Buffer, FragmentLayout | None]] = [(tile, context.facts.get(tile, LAYOUT)) for tile in tiles]
    vectors = [
        context.facts[op, LAYOUT].registers
        for loop in context.statements
        if isinstance(loop, Loop)
        for op in statements(loop.body, Parallel)
        if context.facts[op, VECTOR] > 1
    ]
    tiles_words = sum(layout.words(tile.dtype.bytes) for tile, layout in layouts if layout is not None)
    return tiles_words + min(max(vectors, default=0), _VECTOR_REGISTERS)
