"""The indices of a block, in the order in which blocks take their tiles."""

from tile2cu.plan.grid import Across, ByXcd, Grid, InPanels, LptOrder, TileOrder
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.view import Declaration
from tile2cu.styles.base.vocabulary import GROUP_OF, NAMESPACE

_NARROW = 2  # rows of a group where rows of tiles are short: headers/tl/common/rasterization.h
_PANELS = {Across.ROWS: "rows", Across.COLUMNS: "columns"}


def block_indices(grid: Grid, printer: Printer) -> tuple[Declaration, ...]:
    """The block's indices, or those of the tile of work that a block of a persistent kernel is at."""
    order = ("tile_coord", "") if grid.persistent else None
    if grid.order is not None:
        order = _call(grid.order, grid.blocks, persistent=grid.persistent)
    ordered = 2 if isinstance(grid.order, InPanels) else 3
    block = printer.names.fresh("block") if order else ""
    places = [
        f"{printer.names(index.name)} = "
        + (f"{block}.{'xyz'[axis]}" if order and axis < ordered else f"blockIdx.{'xyz'[axis]}")
        for axis, index in enumerate(grid.indices)
        if index is not None
    ]
    declared = (Declaration(f"const int {', '.join(places)};"),) if places else ()
    if order is None:
        return declared
    call, about = order
    arguments = "tile, tiles" if grid.persistent else ""
    comments = tuple(wrapped(about, BODY_WIDTH)) if about else ()
    return (Declaration(f"const auto {block} = {NAMESPACE}{call}({arguments});", comments), *declared)


def _call(order: TileOrder, blocks: str, *, persistent: bool) -> tuple[str, str]:
    """(call, what it does) of the order in which blocks take their tiles."""
    if isinstance(order, LptOrder):
        return f"lpt_order<{order.least}>", (
            f"LPT order: {blocks} with the most iterations, those of the last x, start first, so that short ones fill "
            f"the tail; in groups of {order.least} values of (y, z), or of as many as make 128 {blocks}, which share "
            f"tensors in L2  [{order.rule}]"
        )
    if isinstance(order, ByXcd):
        return f"contiguous_order</*XCDs=*/{order.xcds}>", (
            f"Tuned for {order.xcds} XCDs, each with its own L2, to which the hardware assigns workgroups round-robin "
            f"(MI300X in SPX mode): XCD i runs the workgroups i, i + {order.xcds}, ...; they take a contiguous range "
            f"of the grid's tiles, x fastest, whose neighbours share tensors in that L2. Correct for any number of "
            f"XCDs  [{order.rule}]"
        )
    kind, reason = _PANELS[order.across], f"  [{order.rule}]" if order.rule else ""
    if order.dies > 1:
        return f"grouped_order<{order.size}, {GROUP_OF}::{kind}, /*XCDs=*/{order.dies}>", (
            f"Tuned for {order.dies} XCDs, each with its own L2, to which the hardware assigns workgroups round-robin "
            f"(MI300X in SPX mode): those of one XCD take a contiguous range of the tiles, in groups of {order.size} "
            f"{kind} (the last may have fewer), every other group backwards; {blocks} of a group share operands there. "
            f"Correct for any number of XCDs{reason}"
        )
    who = "clusters" if order.cluster else blocks
    groups = f"groups of up to {order.size} {kind} of tiles"
    narrow = max(_NARROW, (order.cluster or (1, 1, 1))[order.across is Across.ROWS])
    if order.size > narrow:
        axis = "x" if order.across is Across.ROWS else "y"
        groups += f" ({narrow} where {'tiles' if persistent else 'gridDim'}.{axis} < {order.size})"
    about = (
        f"Grouped rasterisation: {who} cover the grid in {groups}, every other group backwards; {blocks} of a group "
        f"share operands in L2{reason}"
    )
    if order.cluster:
        wide, high, _ = order.cluster
        return f"grouped_order_of_clusters<{order.size}, {GROUP_OF}::{kind}, {wide}, {high}>", about
    return f"grouped_order<{order.size}, {GROUP_OF}::{kind}>", about
