"""The order in which blocks take the tiles of their grid. Results do not depend on it."""

from collections.abc import Iterator
from math import sqrt

from tile2cu.analysis.uses import has, statements
from tile2cu.core.decisions import RASTER_GROUP, TILE_ORDER, WARP_SPECIALISED, XCD_ORDER
from tile2cu.core.expr import Call, Expr, Load, Var, children, static_value, walk
from tile2cu.core.program import Gemm, Launch, Loop, Swizzle
from tile2cu.core.schedule import LptOrder
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.mma.hopper import is_specialised

_GEMM = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
for k in T.Pipelined(bx + 1, num_stages=2):
    T.copy(Z[0, k * 64], A_shared)
    T.copy(Z[k * 64, 0], B_shared)
    T.gemm(A_shared, B_shared, C_local)
T.copy(C_local, Z[0, 0])
"""
_LESSONS = "measured on an H200: benchmarks/RESULTS.md"
_RASTER_GROUP = 12
_LEAST = 4


@rule(
    "schedule.grid.grouped-order",
    phase=Phase.SELECT,
    on=Launch,
    reads=(WARP_SPECIALISED,),
    writes=(RASTER_GROUP,),
    source=f"{_LESSONS}: groups of 12 tile rows beat 4 and 32 by 2 % of a GEMM",
    examples=(Example(_GEMM, "launch", "raster_group", "None", target="cuda:sm_90a"),),
)
def grid_raster_groups(launch: Launch, context: Context) -> Iterator[Decision]:
    """Grouped rasterisation: blocks of a 2-D grid of GEMM tiles run in groups of tile rows, which share operands in L2.

    A cluster of blocks is one element of this order.
    Gives: the rows of a group, in blocks; None where the grid has another shape or the user gave an order.
    """
    if is_specialised(context):
        yield launch, RASTER_GROUP, _RASTER_GROUP if _is_plain(launch, context) else None


@rule(
    "schedule.grid.xcds",
    phase=Phase.SELECT,
    on=Launch,
    writes=(RASTER_GROUP,),
    source="AMD CDNA 3 white paper: an L2 in each XCD; workgroups go round-robin to XCDs (Modular, chiplet_transform)",
    examples=(Example(_GEMM.replace("bx + 1", "4"), "launch", "raster_group", "None", target="hip:gfx942"),),
)
def grid_xcds(launch: Launch, context: Context) -> Iterator[Decision]:
    """On a GPU of several XCDs each takes adjacent tiles of a GEMM, which share operands in the XCD's L2.

    Of the c blocks that run concurrently on an XCD, a square shares the most operands: groups have as many rows as its
    side, for one block per CU.
    Gives: the rows of a group, in blocks; None where the grid has another shape or the user gave an order.
    """
    target = context.target
    if target.dies > 1 and any(isinstance(op, Gemm) for op in context.statements):
        side = round(sqrt(target.multiprocessors / target.dies))
        yield launch, RASTER_GROUP, side if _is_plain(launch, context) else None


@rule(
    "schedule.grid.contiguous-xcds",
    phase=Phase.SELECT,
    on=Launch,
    writes=(XCD_ORDER,),
    source="AMD CDNA 3 white paper: an L2 in each XCD; workgroups go round-robin to XCDs (Modular, chiplet_transform)",
    examples=(Example(_GEMM.replace("bx + 1", "4"), "launch", "xcd_order", "None", target="hip:gfx942"),),
)
def grid_contiguous_xcds(launch: Launch, context: Context) -> Iterator[Decision]:
    """On a GPU of several XCDs each takes adjacent blocks of a 3-D grid, which differ in the first index.

    Blocks of one head of attention read the same K and V: in the grid's own order neighbours are on different XCDs, and
    each L2 holds a copy. Blocks in longest-processing-time-first order keep that.
    Gives: the number of XCDs; None where the grid has another shape or something else orders it.
    """
    dies = context.target.dies
    if dies > 1 and any(isinstance(op, Gemm) for op in context.statements):
        ordered = any(isinstance(op, Swizzle) for op in context.statements) or longest_axis(launch, context) is not None
        yield launch, XCD_ORDER, dies if len(launch.grid) == 3 and not ordered else None


@rule(
    "schedule.grid.lpt-order",
    phase=Phase.SELECT,
    on=Launch,
    writes=(TILE_ORDER,),
    source=f"{_LESSONS}: 1 to 21 % of causal attention",
    examples=(Example(_GEMM, "launch", "tile_order", "longest first, in groups of 4 or more"),),
)
def lpt_order(launch: Launch, context: Context) -> Iterator[Decision]:
    """Where a block's trip count of GEMMs grows with its first index, if it is not 0, the longest blocks start first.

    The short blocks then fill the gaps at the end (longest-processing-time-first order). Blocks that differ in the
    other indices form groups, so that blocks that read the same tensors run at the same time and share them in L2. A
    group is at least a wave of blocks: with smaller groups the last one would start its longest blocks when other SMs
    are idle.
    Gives: the order of the blocks.
    """
    ordered = launch.cluster or any(isinstance(op, Swizzle) for op in context.statements)
    if longest_axis(launch, context) is not None and not ordered:
        yield launch, TILE_ORDER, LptOrder(_LEAST)


def _is_plain(launch: Launch, context: Context) -> bool:
    """Whether the grid has rows and columns of tiles, whose order nothing else decides."""
    ordered = any(isinstance(op, Swizzle) for op in context.statements)
    return len(launch.grid) == 2 and not ordered and longest_axis(launch, context) is None


def longest_axis(launch: Launch, context: Context) -> Var | None:
    """The grid's first index, where it alone increases the trip count of a loop with GEMMs.

    Values that blocks read from memory, as the lengths of sequences, do not count.
    """
    for op in statements(launch.body, Loop, below=False):
        if has(op.body, Gemm):
            iterations = _if_not_empty(context.bounds.expanded(op.stop))
            blocks = [block for block in launch.blocks if block in _outside_memory(iterations)]
            if blocks == [launch.blocks[0]] and context.bounds.never_falls(iterations, blocks[0]):
                return blocks[0]
    return None


def _if_not_empty(iterations: Expr) -> Expr:
    """The trip count of a block that has any iteration: `iterations` where it is no choice between some and none."""
    match iterations:
        case Call(function="if_then_else", args=(_, *arms)) if any(static_value(arm) == 0 for arm in arms):
            return next((arm for arm in arms if static_value(arm) != 0), iterations)
        case _:
            return iterations


def _outside_memory(expr: Expr) -> Iterator[Expr]:
    """The parts of an expression, without the indices at which it reads memory."""
    yield expr
    if not isinstance(expr, Load):
        for part in children(expr):
            yield from _outside_memory(part)


def equal_trip_counts(loop: Loop, context: Context) -> bool:
    """Whether the loop has the same trip count in all blocks, known without memory."""
    parts = (part for end in (loop.start, loop.stop) for part in walk(context.bounds.expanded(end)))
    return not any(part in context.launch.blocks or isinstance(part, Load) for part in parts)
