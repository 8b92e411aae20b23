"""Which tile of the grid each block computes, as a picture: the order of headers/tl/common/rasterization.h."""

from tile2cu.core.expr import static_value
from tile2cu.core.record import Record
from tile2cu.plan.grid import Across, ByXcd, InPanels, LptOrder, TileOrder, grid
from tile2cu.plan.resolved import Resolved
from tile2cu.review import svg

_CELL, _LEFT, _TOP = 30, 60, 30
_SHOWN = 12  # tiles per dimension that a picture has at most
_OPEN = 8  # tiles along a dimension whose extent is a size
_WAVE = 8  # blocks of one colour
_WAVE_BLOCKS = 128  # tl::wave_blocks


class Tile(Record, frozen=True):
    """A tile's coordinates: x along gridDim.x, y along gridDim.y."""

    x: int
    y: int


def order_of_tiles(order: TileOrder | None, columns: int, rows: int) -> list[Tile]:
    """The tile of each block of a grid of `columns` x `rows`, in the order of the blocks."""
    blocks = range(columns * rows)
    match order:
        case LptOrder(least=least):
            return [_longest_first(block, columns, rows, least) for block in blocks]
        case ByXcd(xcds=xcds):
            tiles = (_of_die(block, columns * rows, xcds) for block in blocks)
            return [Tile(number % columns, number // columns) for number in tiles]
        case InPanels():
            return [_in_groups(block, columns, rows, order) for block in blocks]
        case _:
            return [Tile(block % columns, block // columns) for block in blocks]


def raster_picture(resolved: Resolved) -> str:
    """The order as SVG: each tile has the number of its block, and a colour per eight blocks. Empty of a grid of one
    dimension in its own order.

    Extents that are sizes are plotted as 8, and those of more than 12 as 12. `data-block` of a rectangle is the block,
    `data-tile` its tile.
    """
    order = grid(resolved).order
    extents = [_shown(static_value(extent)) for extent in resolved.launch.grid]
    if order is None and len(extents) == 1:
        return ""
    columns, rows = extents[0], extents[1] if len(extents) > 1 else 1
    parts = [svg.text(_LEFT, 12, "tiles along x", kind="note"), svg.text(4, _TOP + 18, "along y", kind="note")]
    for block, tile in enumerate(order_of_tiles(order, columns, rows)):
        x, y = _LEFT + _CELL * tile.x, _TOP + _CELL * tile.y
        title, data = f"block {block}: tile ({tile.x}, {tile.y})", {"block": block, "tile": f"{tile.x},{tile.y}"}
        parts.append(svg.rect(x, y, _CELL, _CELL, fill=svg.colour(block // _WAVE), title=title, **data))
        parts.append(svg.text(x + _CELL / 2, y + _CELL / 2 + 3, block, middle=True))
    width, height = _LEFT + _CELL * columns + 10, _TOP + _CELL * rows + 10
    return svg.picture(width, height, parts, title="order of tiles", about=described(order))


def order_in_words(resolved: Resolved) -> str:
    """The order of a launch's tiles in words."""
    return described(grid(resolved).order)


def described(order: TileOrder | None) -> str:
    """The order in words."""
    match order:
        case LptOrder(least=least):
            return f"the largest x first, for {least} or more values of y at a time"
        case ByXcd(xcds=xcds):
            return f"rows of tiles, a stretch for each of {xcds} XCDs"
        case InPanels(size=size, across=across, cluster=cluster, dies=dies):
            of = f" of clusters of {' x '.join(map(str, cluster))} blocks" if cluster else ""
            each = f", a stretch for each of {dies} XCDs" if dies > 1 else ""
            return f"groups of up to {size} {across.value} of tiles{of}, every other one backwards{each}"
        case _:
            return "rows of tiles, one after the other"


def _shown(extent: object) -> int:
    return max(1, min(int(extent), _SHOWN)) if isinstance(extent, int) else _OPEN


def _in_groups(block: int, columns: int, rows: int, order: InPanels) -> Tile:
    """tl::grouped_order, and tl::grouped_order_of_clusters where clusters divide the grid."""
    length = columns if order.across is Across.ROWS else rows
    size = 2 if length < order.size and order.size > 2 and order.dies == 1 else order.size
    wide, high = (*order.cluster, 1, 1)[:2]
    if wide * high == 1 or columns % wide or rows % high:
        return _grouped(_of_die(block, columns * rows, order.dies), columns, rows, size, order.across)
    thick = high if order.across is Across.ROWS else wide
    x, y = block % columns, block // columns
    cluster = x // wide + y // high * (columns // wide)
    first = _grouped(cluster, columns // wide, rows // high, max(1, size // thick), order.across)
    return Tile(first.x * wide + x % wide, first.y * high + y % high)


def _of_die(block: int, blocks: int, dies: int) -> int:
    """tl::index_by_xcd."""
    die, least, longer = block % dies, blocks // dies, blocks % dies
    return die * least + min(die, longer) + block // dies


def _grouped(number: int, columns: int, rows: int, group: int, across: Across) -> Tile:
    """tl::tile_in_groups."""
    length, breadth = (columns, rows) if across is Across.ROWS else (rows, columns)
    index, within = divmod(number, group * length)
    width = min(breadth - index * group, group)
    step = within // width
    far, near = index * group + within % width, step if index % 2 == 0 else length - 1 - step
    return Tile(near, far) if across is Across.ROWS else Tile(far, near)


def _longest_first(block: int, columns: int, rows: int, least: int) -> Tile:
    """tl::lpt_order."""
    group = _WAVE_BLOCKS // columns if columns * least < _WAVE_BLOCKS else least
    first = block // (group * columns) * group
    size, rest = min(rows - first, group), block - first * columns
    return Tile(columns - 1 - rest // size, first + rest % size)
