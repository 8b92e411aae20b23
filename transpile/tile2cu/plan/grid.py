"""Where a block's tile of work is in the grid, and in which order blocks take them."""

from collections.abc import Iterable, Iterator
from enum import Enum

from tile2cu.analysis.uses import all_expressions, statements
from tile2cu.core.decisions import PERSISTENT, RASTER_GROUP, SCHEDULE, TILE_ORDER, XCD_ORDER
from tile2cu.core.expr import Expr, Named, Var, walk
from tile2cu.core.program import Loop, Swizzle
from tile2cu.core.record import Record
from tile2cu.core.schedule import MmaInFlight, Schedule
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import viewed_tensors


class Across(Enum):
    """What a panel of tiles is made of."""

    ROWS = "rows"
    COLUMNS = "columns"


class LptOrder(Record, frozen=True, kw_only=True):
    """Tiles with the most iterations first; `least` that differ in other indices at a time."""

    least: int
    rule: str


class InPanels(Record, frozen=True, kw_only=True):
    """Panels of up to `size` rows or columns; of clusters, or a stretch to each of `dies`. No rule: the user's own."""

    size: int
    across: Across
    cluster: tuple[int, ...]
    dies: int
    rule: str


class ByXcd(Record, frozen=True, kw_only=True):
    """Each of `xcds` XCDs has a contiguous range of the tiles, the first index fastest."""

    xcds: int
    rule: str


TileOrder = LptOrder | InPanels | ByXcd
_ASKED = {"row": Across.ROWS, "col": Across.COLUMNS, "column": Across.COLUMNS}


class Grid(Record, frozen=True, kw_only=True):
    """The block's indices by axis, None where nothing reads one, and the order of tiles where it is not the grid's own.

    In a `persistent` kernel they are those of the tile of work that a block is at. `blocks` is the target's word for
    them: blocks or workgroups.
    """

    indices: tuple[Var | None, ...]
    order: TileOrder | None
    persistent: bool
    blocks: str


def grid(resolved: Resolved) -> Grid:
    """The grid of a launch."""
    read = {part for expr in kernel_expressions(resolved) for part in walk(expr) if isinstance(part, Var)}
    return Grid(
        indices=tuple(block if block in read else None for block in resolved.launch.blocks),
        order=_order(resolved),
        persistent=resolved.facts.get(resolved.launch, PERSISTENT) is not None,
        blocks="workgroups" if resolved.target.is_amd else "blocks",
    )


def kernel_expressions(resolved: Resolved) -> Iterator[Expr]:
    """Every expression that the kernel itself evaluates, the extents of its tensors included."""
    yield from all_expressions(resolved.launch.body)
    for tensor in viewed_tensors(resolved):
        yield from tensor.shape
        yield from tensor.strides or ()
    for let in resolved.launch.prelude:
        yield let.value


def used_sizes(resolved: Resolved) -> tuple[Var, ...]:
    """The run-time sizes that the kernel needs as arguments."""
    read = {part for expr in kernel_expressions(resolved) for part in walk(expr)}
    if resolved.scheduled and resolved.grid_schedule is not None:
        read |= set(resolved.grid_schedule.sizes)
    return tuple(size for size in resolved.program.sizes if size in read)


def passed_numbers(resolved: Resolved) -> tuple[str, ...]:
    """The static numbers that the kernel takes as arguments: those of the trip counts of loops whose MMA reads a copy.

    Where ptxas knows the trip count, it issues more of the next iteration's instructions between the wgmmas, and a
    kernel took 4 to 7 % longer on an H200 (docs/lab/gemm.md). Numbers of a tile's extents stay constants.
    """
    launch, facts = resolved.launch, resolved.facts
    loops = [loop for loop in statements(launch.body, Loop) if _reads_a_copy(facts.get(loop, SCHEDULE))]
    extents = _names(extent for tile in launch.tiles for extent in tile.shape)
    return tuple(
        name for name in _names(end for loop in loops for end in (loop.start, loop.stop)) if name not in extents
    )


def _names(exprs: Iterable[Expr]) -> dict[str, None]:
    """The names of static numbers in expressions."""
    return {part.name: None for expr in exprs for part in walk(expr) if isinstance(part, Named)}


def _reads_a_copy(found: Schedule | None) -> bool:
    return isinstance(found, MmaInFlight) and found.copied is not None


def _order(resolved: Resolved) -> TileOrder | None:
    launch, facts = resolved.launch, resolved.facts
    longest = facts.get(launch, TILE_ORDER)
    if longest is not None:
        return LptOrder(least=longest.least, rule=facts.rule(launch, TILE_ORDER))
    asked = next(statements(launch.body, Swizzle), None)
    if asked is not None and len(launch.grid) > 1:
        return InPanels(size=asked.panel, across=_ASKED[asked.order], cluster=launch.cluster, dies=1, rule="")
    xcds, size = facts.get(launch, XCD_ORDER), facts.get(launch, RASTER_GROUP)
    if xcds is not None:
        return ByXcd(xcds=xcds, rule=facts.rule(launch, XCD_ORDER))
    if size is None:
        return None
    rule = facts.rule(launch, RASTER_GROUP)
    return InPanels(size=size, across=Across.ROWS, cluster=launch.cluster, dies=resolved.target.dies, rule=rule)
