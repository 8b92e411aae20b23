"""T.PersistentTileScheduler: the tiles that a block of a persistent kernel takes one after the other.

Tile t of all is in panel `t // (primary * swizzle_size)`: `swizzle_size` lines of tiles, the last one has what is
left, which are gone through across. The lines are columns, and `primary` their length, where the order is
column-major, else rows. Without a swizzle a panel is one line.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, Role, Var, binary, int_const, static_value
from tile2cu.core.program import Assign, Declare, Stmt
from tile2cu.core.record import Record
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault, did_you_mean
from tile2cu.frontend.lets import let
from tile2cu.frontend.lower.elementwise import ceildiv
from tile2cu.frontend.lower.operand import as_count, as_flag, as_integer
from tile2cu.frontend.lower.operand import place as here
from tile2cu.frontend.record import Place, Position
from tile2cu.frontend.values import Builtin


class Order(Record, frozen=True):
    """The order of the tiles: lines of `primary` tiles, `lines` of them, `width` to a panel."""

    primary: Expr
    lines: Expr
    width: Expr
    column_major: bool
    workers: Expr

    @property
    def count(self) -> Expr:
        return binary("*", self.primary, self.lines)


class _Panel(Record, frozen=True, eq=False):
    """The values that a tile's coordinates are computed from, and the loop in which they hold."""

    block: list[Stmt]
    loops: int
    coordinates: tuple[Expr, Expr]


@dataclass(eq=False)
class TileScheduler:
    """`T.PersistentTileScheduler(...)`: an order of tiles and, with state, the tile of this block's iteration.

    The state is two scalars, declared where T.PersistentTileScheduler is, or by `init` with their first values.
    """

    order: Order
    name: str
    tile: Var | None = None
    turn: Var | None = None
    home: Position | None = None
    made_at: Place | None = None
    panel: _Panel | None = None
    fixed: Mapping[str, object] = field(default_factory=dict)


def persistent_tile_scheduler(
    cx: Context,
    num_m_tiles: object,
    num_n_tiles: object,
    num_workers: object = None,
    swizzle_size: object = 1,
    column_major: object = True,
    cluster_size: object = 1,
    stateful: object = True,
    name: object = None,
) -> object:
    """`T.PersistentTileScheduler(num_m_tiles, num_n_tiles, ...)`: worker w takes tiles w, w + num_workers, ..."""
    what = "of T.PersistentTileScheduler"
    cluster = as_count(cluster_size, f"`cluster_size` {what}", least=1)
    prefix = name if isinstance(name, str) and name.isidentifier() else "sched"
    rows = as_integer(ceildiv(cx, num_m_tiles, cluster) if cluster > 1 else num_m_tiles, f"`num_m_tiles` {what}")
    rows = _named(cx, f"{prefix}_m_tiles", rows)
    columns = _named(cx, f"{prefix}_n_tiles", as_integer(num_n_tiles, f"`num_n_tiles` {what}"))
    width = as_integer(swizzle_size, f"`swizzle_size` {what}")
    by_column = as_flag(column_major, f"`column_major` {what}")
    if num_workers is None:
        count = cx.target.multiprocessors // cluster
        formula = "driver.get_num_sms()" + (f" // {cluster}" if cluster > 1 else "")
        num_workers = cx.bind_static(f"{prefix}_workers", count, here(cx), formula=formula, comment="")
    order = Order(
        primary=rows if by_column else columns,
        lines=columns if by_column else rows,
        width=width,
        column_major=by_column,
        workers=as_integer(num_workers, f"`num_workers` {what}"),
    )
    fixed = {"cluster_size": cluster_size, "swizzle_size": swizzle_size, "num_workers": num_workers}
    if not as_flag(stateful, f"`stateful` {what}"):
        return TileScheduler(order, prefix, fixed=fixed)
    cx.recorder.require_kernel("T.PersistentTileScheduler")
    return TileScheduler(
        order,
        prefix,
        tile=cx.recorder.variable(f"{prefix}_tile", INT32, Role.MUTABLE),
        turn=cx.recorder.variable(f"{prefix}_iter", INT32, Role.MUTABLE),
        home=cx.recorder.position,
        made_at=cx.recorder.peek(),
        fixed=fixed,
    )


def _named(cx: Context, name: str, count: Expr) -> Expr:
    """A number of tiles that the kernel computes, under a name."""
    computed = static_value(count) is None and not isinstance(count, Var)
    return let(cx, name, count) if computed and cx.recorder.in_kernel else count


def attribute(cx: Context, scheduler: TileScheduler, name: str, text: str) -> object:
    """A method or an attribute of a scheduler."""
    if name == "coord":
        return Builtin(text, lambda cx, tile_id: coordinates(cx, scheduler, as_integer(tile_id, "the tile of coord()")))
    if name in scheduler.fixed:
        return scheduler.fixed[name]
    if scheduler.tile is not None and name in _METHODS:
        return Builtin(text, _METHODS[name](scheduler))
    if scheduler.tile is not None and name in _STATE:
        return _STATE[name](cx, scheduler)
    if name in (*_METHODS, *_STATE):
        raise Fault("T2C-F013", f"`{name}` of a scheduler that is made with stateful=False", help="use coord(tile_id)")
    known = ["coord", *_METHODS, *_STATE, *scheduler.fixed]
    raise Fault("T2C-F013", f"a tile scheduler has no attribute `{name}`", help=did_you_mean(name, known))


def _init(scheduler: TileScheduler) -> Callable[[Context, object], object]:
    """`init(worker_id)`: the first tile is the one with the worker's number."""

    def run(cx: Context, worker_id: object) -> None:
        first = as_integer(worker_id, "the worker of init()")
        starts = scheduler.home is not None and scheduler.home.block is cx.recorder.position.block
        if starts:
            scheduler.home = None
        _set(cx, scheduler, first, int_const(0), starts=starts)

    return run


def _next_tile(scheduler: TileScheduler) -> Callable[[Context], object]:
    """`next_tile()`: the tile that comes when every worker has taken one."""

    def run(cx: Context) -> None:
        _set(cx, scheduler, scheduler.order.workers, int_const(1), op="+")

    return run


def _valid(scheduler: TileScheduler) -> Callable[[Context], object]:
    """`valid()`: whether the tile is one of those that there are."""
    return lambda cx: binary("<", _tile(cx, scheduler), scheduler.order.count)


def _set(cx: Context, scheduler: TileScheduler, tile: Expr, turn: Expr, *, op: str = "", starts: bool = False) -> None:
    """Give the state, or declare it with, its values."""
    cx.recorder.require_tile_operation("the iteration of a tile scheduler")
    if not starts:
        _declare(cx, scheduler)
    at = cx.recorder.take()
    assert scheduler.tile is not None and scheduler.turn is not None
    for var, value, place in ((scheduler.tile, tile, at), (scheduler.turn, turn, Place(at.span))):
        if starts:
            cx.recorder.emit(Declare(var=var, init=value, **place.fields))
        else:
            cx.recorder.emit(Assign(var=var, value=value, op=op, **place.fields))
    scheduler.panel = None


def _declare(cx: Context, scheduler: TileScheduler) -> None:
    """Declares the state where the scheduler was made, if nothing has declared it yet."""
    if scheduler.home is None:
        return
    assert scheduler.tile is not None and scheduler.turn is not None and scheduler.made_at is not None
    for var in (scheduler.turn, scheduler.tile):
        cx.recorder.insert(scheduler.home, Declare(var=var, init=int_const(0), span=scheduler.made_at.span))
    scheduler.home = None


def _tile(cx: Context, scheduler: TileScheduler) -> Expr:
    _declare(cx, scheduler)
    assert scheduler.tile is not None
    return scheduler.tile


def _turn(cx: Context, scheduler: TileScheduler) -> object:
    _declare(cx, scheduler)
    return scheduler.turn


def _coordinate(at: int) -> Callable[[Context, TileScheduler], object]:
    """`m_idx` or `n_idx`; what both are computed from is computed once per iteration."""

    def run(cx: Context, scheduler: TileScheduler) -> object:
        tile = _tile(cx, scheduler)
        panel = scheduler.panel
        if panel is None or not cx.recorder.is_open(panel.block) or panel.loops != cx.recorder.loops:
            found = coordinates(cx, scheduler, tile)
            panel = _Panel(cx.recorder.position.block, cx.recorder.loops, found)
            scheduler.panel = panel
        return panel.coordinates[at]

    return run


def coordinates(cx: Context, scheduler: TileScheduler, tile: Expr) -> tuple[Expr, Expr]:
    """The row and the column of a tile by its number."""
    order = scheduler.order
    if static_value(order.width) == 1:
        across, along = binary("//", tile, order.primary), binary("%", tile, order.primary)
        return (along, across) if order.column_major else (across, along)
    size = binary("*", order.primary, order.width)
    panel = let(cx, f"{scheduler.name}_panel", binary("//", tile, size))
    within = let(cx, f"{scheduler.name}_within", binary("%", tile, size))
    first = binary("*", panel, order.width)
    left = Call(INT32, "min", (order.width, binary("-", order.lines, first)))
    width = let(cx, f"{scheduler.name}_width", Call(INT32, "max", (left, int_const(1))))
    along, across = binary("//", within, width), binary("+", first, binary("%", within, width))
    return (along, across) if order.column_major else (across, along)


_METHODS: Mapping[str, Callable[[TileScheduler], Callable[..., object]]] = MappingProxyType(
    {"init": _init, "next_tile": _next_tile, "valid": _valid}
)
_STATE: Mapping[str, Callable[[Context, TileScheduler], object]] = MappingProxyType(
    {"m_idx": _coordinate(0), "n_idx": _coordinate(1), "linear_idx": _tile, "current_iter": _turn}
)

FUNCTIONS: dict[str, Callable[..., object]] = {"PersistentTileScheduler": persistent_tile_scheduler}
