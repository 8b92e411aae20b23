"""Explicit pipelines: the hardware and layouts that the user's barriers, TMA copies and groups of threads require."""

from collections.abc import Iterator

from tile2cu.analysis.groups import outside_of_groups
from tile2cu.core.decisions import (
    CALL,
    EXPLICIT_SYNC,
    SHARED_LAYOUT,
    TMA_IF,
)
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import static_value
from tile2cu.core.layout import SharedLayout
from tile2cu.core.program import Buffer, Copy, Gemm, Launch, Reduce, Region, Scan, Scope
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.layout.operands import swizzled
from tile2cu.rules.mma.hopper import (
    PATTERN_ROWS,
    TMA_RANK,
    box_unsupported,
    rows_aligned_if,
    rows_unsupported,
)

_EXPLICIT = """\
S = T.alloc_shared((64, 64), "float16")
L = T.alloc_fragment((64, 64), "float16")
there = T.alloc_barrier(128)
T.tma_copy(Y[bx * 64, 0], S, barrier=there)
T.barrier_arrive(there)
T.barrier_wait(there, 0)
T.copy(S, L)"""

_STORED = """\
S = T.alloc_shared((64, 64), "float16")
T.clear(S)
T.tma_copy(S, Y[bx * 64, 0])
T.tma_store_wait()"""


@rule(
    "launch.explicit.available",
    phase=Phase.WARPS,
    on=Launch,
    writes=(EXPLICIT_SYNC,),
    source="PTX ISA, 'mbarrier' with transactions and 'cp.async.bulk.tensor': sm_90; 'barrier': all",
    examples=(Example(_EXPLICIT, "launch", "explicit_sync", "True", target="cuda:sm_90a"),),
)
def explicit_barriers(launch: Launch, context: Context) -> Iterator[Decision]:
    """Barriers with transaction counts and TMA need sm_90; groups of threads need NVIDIA's named barriers.

    Gives: that the user orders the accesses to shared memory, where there are barriers.
    Errors: T2C-S006 where the target lacks them, T2C-P003 for a reduction by all groups together.
    """
    barriers = [tile for tile in launch.tiles if tile.scope is Scope.BARRIER]
    if barriers and not context.target.tma:
        raise Tile2CuError(
            "T2C-S006",
            f"{context.target.arch} has no mbarriers with transaction counts, and no TMA",
            barriers[0].span,
            help="write T.copy in a T.Pipelined loop, which tile2cu pipelines on every target, or take cuda:sm_90a",
        )
    stored = next((op for op in context.statements if isinstance(op, Copy) and op.begun), None)
    if stored is not None and not context.target.tma:
        raise Tile2CuError(
            "T2C-S006", f"{context.target.arch} has no TMA, which T.tma_copy uses", stored.span, help="write T.copy"
        )
    begun = next((op for op in context.statements if isinstance(op, Gemm) and op.begun), None)
    if begun is not None and not context.target.wgmma:
        raise Tile2CuError(
            "T2C-S006",
            f"{context.target.arch} has no asynchronous MMAs, which T.wgmma_gemm starts",
            begun.span,
            help="write T.gemm, and leave T.wait_wgmma out",
        )
    if launch.groups > 1 and context.target.mfma:
        raise Tile2CuError(
            "T2C-S006",
            f"{context.target.arch} has one barrier per workgroup: groups of its threads cannot synchronise separately",
            launch.span,
            help="leave T.ws out, and let all threads do the work",
        )
    shared_by_groups = (op for op in outside_of_groups(launch.body) if isinstance(op, Reduce | Scan))
    exchange = next(shared_by_groups, None) if launch.groups > 1 else None
    if exchange is not None:
        raise Tile2CuError(
            "T2C-P003",
            "the groups of the block run independently, and would all exchange partial results in the same workspace",
            exchange.span,
            help="put it under the `with T.ws(group):` of the group that needs it",
        )
    if barriers:
        yield launch, EXPLICIT_SYNC, True


@rule(
    "select.copy.explicit-tma",
    phase=Phase.STRICT,
    on=Copy,
    writes=(CALL, SHARED_LAYOUT, TMA_IF),
    source="PTX ISA, 'Tensor Size, Dimension and Stride', 'Swizzling Modes'",
    examples=(
        Example(_EXPLICIT, 4, "call", "tma_load", target="cuda:sm_90a"),
        Example(_STORED, 3, "call", "tma_copy", target="cuda:sm_90a"),
    ),
)
def explicit_tma(op: Copy, context: Context) -> Iterator[Decision]:
    """T.tma_copy is a load or store by TMA of a tile with the widest swizzle that divides its rows.

    TMA's swizzles repeat every eight rows: a tile with another number of rows has no swizzle, and is one box, or
    several for a single row.
    Gives: the call, the layout of the tile, and the condition on its tensor's rows.
    Errors: T2C-S007 where TMA cannot do it.
    """
    if op.barrier is None and not op.begun:
        return
    outside, inside = (op.dst, op.src) if op.begun else (op.src, op.dst)
    tile, tensor, moves = inside.buffer, outside.buffer, "stores" if op.begun else "fills"
    is_row = _is_row(outside, inside)
    reason = ("" if is_row else box_unsupported(outside, inside)) or rows_unsupported(tensor)
    if tile.rank < 2 or not _is_of_swizzle_atoms(inside, context):
        reason = f"{moves} a part of `{tile.name}` that is not all rows of whole swizzle atoms"
    rows, columns = tile.static_shape[-2:] if tile.rank > 1 else (1, 1)
    if rows > 256 or tile.dtype.bytes_of(columns) % 16:
        reason = f"{moves} `{tile.name}`, which has over 256 rows, or rows that are not a multiple of 16 bytes"
    in_patterns = rows % PATTERN_ROWS == 0 and tile.dtype.bytes_of(columns) % 32 == 0
    if not in_patterns and not is_row and columns > 256:
        most = "a TMA box has at most 256; tiles with a multiple of 8 rows use several boxes"
        reason = f"{moves} `{tile.name}` of {columns} columns, and {most}"
    if reason:
        raise Tile2CuError("T2C-S007", f"T.tma_copy {reason}", op.span, help="write T.copy")
    yield op, CALL, "tma_copy" if op.begun else "tma_load"
    yield tile, SHARED_LAYOUT, swizzled(tile) if in_patterns else _plain(tile)
    yield tensor, TMA_IF, rows_aligned_if(tensor)


def _is_of_swizzle_atoms(part: Region, context: Context) -> bool:
    """Whether it is all rows of whole swizzle atoms of a tile: as many columns as a swizzle spans, aligned to that."""
    tile = part.buffer
    rows, columns = part.ranges[-2:]
    if static_value(rows.extent) != static_value(tile.shape[-2]):
        return False
    if static_value(columns.extent) == static_value(tile.shape[-1]):
        return True
    if tile.static_shape[-2] % PATTERN_ROWS:
        return False
    span, count = swizzled(tile).swizzle, static_value(columns.extent)
    slab = span // tile.dtype.bytes
    whole = isinstance(count, int) and slab > 0 and count % slab == 0
    return whole and context.bounds.multiple_of(columns.start) % slab == 0


def _is_row(outside: Region, inside: Region) -> bool:
    """Whether a tile of a single row, or a plane of one, runs along the last dimension of a tensor."""
    tile, tensor = inside.buffer, outside.buffer
    uniform = tile.dtype == tensor.dtype and not tile.dtype.is_packed and 2 <= tensor.rank <= TMA_RANK
    single = tile.rank > 1 and static_value(tile.shape[-2]) == 1
    return uniform and single and inside.kept == (tile.rank - 1,) and outside.kept == (tensor.rank - 1,)


def _plain(tile: Buffer) -> SharedLayout:
    return SharedLayout(tile.static_shape, tile.dtype.bits)
