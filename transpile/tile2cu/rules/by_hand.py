"""Pipelines by hand: what the user's barriers, TMA copies and groups of threads ask of the chip and of tiles."""

from collections.abc import Iterator

from tile2cu.analysis.groups import outside_of_groups
from tile2cu.core.decisions import (
    CALL,
    EXPLICIT_SYNC,
    EXPLICIT_WGMMA,
    NO_WGMMA,
    SHARED_LAYOUT,
    TMA_IF,
    WARP_SPECIALISED,
)
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import static_value
from tile2cu.core.facts import rejected
from tile2cu.core.layout import SharedLayout
from tile2cu.core.program import Buffer, Copy, Gemm, Launch, Reduce, Region, Scan, Scope
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.hopper import (
    PATTERN_ROWS,
    TMA_RANK,
    box_refusal,
    is_specialised,
    rows_refusal,
    rows_when,
)
from tile2cu.rules.layout.operands import swizzled
from tile2cu.rules.wgmma_products import product_refusal

_BY_HAND = """\
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

_PRODUCT = """\
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.copy(Z[0, 0], A_shared)
T.clear(C_local)
T.wgmma_gemm(A_shared, A_shared, C_local)
T.wait_wgmma(0)"""
_WARPGROUP = 128  # threads


@rule(
    "launch.explicit.available",
    phase=Phase.WARPS,
    on=Launch,
    writes=(EXPLICIT_SYNC,),
    source="PTX ISA, 'mbarrier' with transactions and 'cp.async.bulk.tensor': sm_90; 'barrier': all",
    examples=(Example(_BY_HAND, "launch", "by_hand", "True", target="cuda:sm_90a"),),
)
def by_hand(launch: Launch, context: Context) -> Iterator[Decision]:
    """Barriers with transactions and TMA are there from sm_90 on; groups of threads have barriers on NVIDIA's chips.

    Gives: that the user orders the accesses to shared memory, where there are barriers.
    Errors: T2C-S006 where the chip lacks them, T2C-P003 for a reduction by all groups at once.
    """
    barriers = [tile for tile in launch.tiles if tile.scope is Scope.BARRIER]
    if barriers and not context.target.tma:
        raise Tile2CuError(
            "T2C-S006",
            f"{context.target.arch} has no barriers that count bytes, and no TMA that arrives there",
            barriers[0].span,
            help="write T.copy in a T.Pipelined loop, which tile2cu pipelines on every chip, or take cuda:sm_90a",
        )
    stored = next((op for op in context.statements if isinstance(op, Copy) and op.begun), None)
    if stored is not None and not context.target.tma:
        raise Tile2CuError(
            "T2C-S006", f"{context.target.arch} has no TMA, which T.tma_copy begins", stored.span, help="write T.copy"
        )
    begun = next((op for op in context.statements if isinstance(op, Gemm) and op.begun), None)
    if begun is not None and not context.target.wgmma:
        raise Tile2CuError(
            "T2C-S006",
            f"{context.target.arch} has no products that run by themselves while a warpgroup goes on",
            begun.span,
            help="write T.gemm, and leave T.wait_wgmma out",
        )
    if launch.groups > 1 and context.target.mfma:
        raise Tile2CuError(
            "T2C-S006",
            f"{context.target.arch} has one barrier a block: groups of its threads cannot work by themselves",
            launch.span,
            help="leave T.ws out, and let all threads do the work",
        )
    shared_by_groups = (op for op in outside_of_groups(launch.body) if isinstance(op, Reduce | Scan))
    exchange = next(shared_by_groups, None) if launch.groups > 1 else None
    if exchange is not None:
        raise Tile2CuError(
            "T2C-P003",
            "the groups of the block work by themselves, and would all exchange the parts of this in one place",
            exchange.span,
            help="put it under the `with T.ws(group):` of the group that needs it",
        )
    if barriers:
        yield launch, EXPLICIT_SYNC, True


@rule(
    "warps.gemm.explicit-wgmma",
    phase=Phase.WARPS,
    on=Launch,
    reads=(WARP_SPECIALISED,),
    writes=(EXPLICIT_WGMMA, NO_WGMMA),
    source="PTX ISA, 'wgmma.mma_async': every thread of a warpgroup, four warps from a multiple of four on",
    examples=(Example(_PRODUCT, 5, "wgmma", "True", target="cuda:sm_90a"),),
)
def wgmma_by_hand(launch: Launch, context: Context) -> Iterator[Decision]:
    """In a kernel whose pipeline the user wrote, products of whole warpgroups run on wgmma, too.

    Products that share a fragment need the same layout of it: all of them do, or none.

    Gives: which products do, and why others do not.
    """
    if not context.target.wgmma or is_specialised(context) or not _writes_its_pipeline(launch, context):
        return
    products = [op for op in context.statements if isinstance(op, Gemm)]
    refusals = {id(op): _wgmma_refusal(op, launch, context) for op in products}
    for _ in products:
        for op in products:
            met = (refusals[id(other)] for other in products if not refusals[id(op)] and _share_a_fragment(op, other))
            refusals[id(op)] = next(filter(None, met), refusals[id(op)])
    for op in products:
        if refusals[id(op)]:
            yield rejected(op, NO_WGMMA, refusals[id(op)], "change that: docs/hopper.md has the rest")
        else:
            yield op, EXPLICIT_WGMMA, True


def _writes_its_pipeline(launch: Launch, context: Context) -> bool:
    """Whether the user says which threads do what, and when: by groups, barriers, or products that are waited for."""
    by_hand = launch.groups > 1 or any(tile.scope is Scope.BARRIER for tile in launch.tiles)
    return by_hand or any(isinstance(op, Gemm) and op.begun for op in context.statements)


def _wgmma_refusal(op: Gemm, launch: Launch, context: Context) -> str:
    threads = context.of(op).threads
    if threads % _WARPGROUP or any(sum(launch.sizes[:group]) % _WARPGROUP for group in range(launch.groups)):
        return f"{threads} threads, or those before them, are no whole warpgroups"
    return product_refusal(op, context.of(op))


def _share_a_fragment(op: Gemm, other: Gemm) -> bool:
    """Whether a fragment of one product is one of the other's."""
    own, others = (
        {region.buffer.memory.name for region in product.regions if region.buffer.scope is Scope.FRAGMENT}
        for product in (op, other)
    )
    return bool(own & others)


@rule(
    "select.copy.explicit-tma",
    phase=Phase.STRICT,
    on=Copy,
    writes=(CALL, SHARED_LAYOUT, TMA_IF),
    source="PTX ISA, 'Tensor Size, Dimension and Stride', 'Swizzling Modes'",
    examples=(
        Example(_BY_HAND, 4, "call", "tma_load", target="cuda:sm_90a"),
        Example(_STORED, 3, "call", "tma_copy", target="cuda:sm_90a"),
    ),
)
def tma_by_hand(op: Copy, context: Context) -> Iterator[Decision]:
    """T.tma_copy is a load or store by TMA of a tile with the widest swizzle that divides its rows.

    TMA swizzles addresses, in a pattern of eight rows: a tile of other numbers of rows has no swizzle, which one box
    moves, or a single row several.
    Gives: the call, the layout of the tile, and what must hold for its tensor's rows.
    Errors: T2C-S007 where TMA cannot do it.
    """
    if op.barrier is None and not op.begun:
        return
    outside, inside = (op.dst, op.src) if op.begun else (op.src, op.dst)
    tile, tensor, moves = inside.buffer, outside.buffer, "stores" if op.begun else "fills"
    is_row = _is_row(outside, inside)
    reason = ("" if is_row else box_refusal(outside, inside)) or rows_refusal(tensor)
    if tile.rank < 2 or not _is_of_panels(inside, context):
        reason = f"{moves} a part of `{tile.name}` that is not all rows of some of its panels"
    rows, columns = tile.static_shape[-2:] if tile.rank > 1 else (1, 1)
    if rows > 256 or tile.dtype.bytes_of(columns) % 16:
        reason = f"{moves} `{tile.name}`, which has over 256 rows, or rows that are no multiple of 16 bytes"
    in_patterns = rows % PATTERN_ROWS == 0 and tile.dtype.bytes_of(columns) % 32 == 0
    if not in_patterns and not is_row and columns > 256:
        reason = f"{moves} `{tile.name}` of {columns} columns, and boxes have 256; with rows in eights it takes several"
    if reason:
        raise Tile2CuError("T2C-S007", f"T.tma_copy {reason}", op.span, help="write T.copy")
    yield op, CALL, "tma_copy" if op.begun else "tma_load"
    yield tile, SHARED_LAYOUT, swizzled(tile) if in_patterns else _plain(tile)
    yield tensor, TMA_IF, rows_when(tensor)


def _is_of_panels(part: Region, context: Context) -> bool:
    """Whether it is all rows of some panels of a tile: as many columns as a swizzle's span has, from one of them on."""
    tile = part.buffer
    rows, columns = part.ranges[-2:]
    if static_value(rows.extent) != static_value(tile.shape[-2]):
        return False
    if static_value(columns.extent) == static_value(tile.shape[-1]):
        return True
    if tile.static_shape[-2] % PATTERN_ROWS:
        return False
    span, count = swizzled(tile).swizzle, static_value(columns.extent)
    panel = span // tile.dtype.bytes
    whole = isinstance(count, int) and panel > 0 and count % panel == 0
    return whole and context.bounds.multiple_of(columns.start) % panel == 0


def _is_row(outside: Region, inside: Region) -> bool:
    """Whether a tile of a single row, or a plane of one, lies along the last dimension of a tensor."""
    tile, tensor = inside.buffer, outside.buffer
    alike = tile.dtype == tensor.dtype and not tile.dtype.is_packed and 2 <= tensor.rank <= TMA_RANK
    single = tile.rank > 1 and static_value(tile.shape[-2]) == 1
    return alike and single and inside.kept == (tile.rank - 1,) and outside.kept == (tensor.rank - 1,)


def _plain(tile: Buffer) -> SharedLayout:
    return SharedLayout(tile.static_shape, tile.dtype.bits)
