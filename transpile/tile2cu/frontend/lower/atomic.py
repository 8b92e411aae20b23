"""Atomic updates, of one element or of a whole tile, and the user's own barriers."""

from collections.abc import Callable, Sequence
from functools import partial

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, Load, Role, Var, int_const, static_value
from tile2cu.core.expr import binary as add
from tile2cu.core.program import (
    Atomic,
    AtomicTile,
    Buffer,
    Loop,
    LoopKind,
    Reduction,
    Scope,
    Stmt,
    Store,
    Sync,
)
from tile2cu.core.span import Span
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.linear import difference, number_of
from tile2cu.frontend.lower import barriers, tiles
from tile2cu.frontend.lower.copy import operands
from tile2cu.frontend.lower.operand import as_flag, as_number, as_region, as_word
from tile2cu.frontend.lower.spread import is_open, is_placed, spread
from tile2cu.frontend.placement import guarded
from tile2cu.frontend.values import Lanes, Placed, TileValue, View, describe

_ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
_NARROWEST = 16  # bits of the narrowest element that all machines update atomically


def _atomic(
    name: str,
    kind: Reduction,
    cx: Context,
    /,
    dst: object,
    value: object,
    memory_order: object = None,
    return_prev: object = False,
    use_tma: object = False,
) -> object:
    """`T.atomic_add(dst, value)`: of an element, or of tiles by T.copy's rules."""
    cx.recorder.require_kernel(name)
    order, returns = _order(name, memory_order), as_flag(return_prev, f"`return_prev` of {name}")
    if not isinstance(dst, Buffer | View) and not isinstance(value, Buffer | View | TileValue):
        return _element(cx, name, kind, dst, value, order, returns=returns)
    if returns:
        message = f"{name} of tiles gives no old values"
        raise Fault("T2C-F023", message, help="write a T.Parallel loop over its elements")
    if isinstance(dst, Load) and isinstance(value, TileValue):
        value = tiles.written(cx, value, "value")
    if order or not isinstance(value, Buffer | View):
        _elements(cx, name, kind, dst, value, order)
    else:
        _tile(cx, name, kind, dst, value)
    return None


def _order(name: str, order: object, *, default: str = "relaxed", allowed: tuple[str, ...] = _ORDERS) -> str:
    """The memory order by its name; empty for relaxed, which orders nothing else. Compilers consume by acquiring."""
    found = as_word(default if order is None else order, f"`memory_order` of {name}", allowed)
    return {"relaxed": "", "consume": "acquire"}.get(found, found)


def _tile(cx: Context, name: str, kind: Reduction, dst: object, value: object) -> None:
    cx.recorder.require_tile_operation(name)
    source, target = operands(cx, name, value, dst)
    if target.buffer.scope not in (Scope.GLOBAL, Scope.SHARED):
        raise Fault("T2C-F023", f"{name}: the destination is {describe(target.buffer)}", help="write T.Parallel")
    _require_type(name, kind, target.buffer)
    if is_placed(cx, source, target) or is_open(source, target):
        spread(cx, source, target, kind)
        return
    cx.recorder.emit(AtomicTile(kind=kind, src=source, dst=target, **cx.recorder.take().fields))


def _elements(cx: Context, name: str, kind: Reduction, dst: object, value: object, order: str) -> None:
    """The update of each element of a tensor or tile, or of a slice of one."""
    cx.recorder.require_tile_operation(name)
    if isinstance(value, Buffer | View):
        source, target = operands(cx, name, value, dst)
        value = tiles.elements(cx, source)
    else:
        target = as_region(cx, dst, f"the destination of {name}")
    _require_shared(name, target.buffer)
    _require_type(name, kind, target.buffer)

    def update(place: Load, read: Expr, span: Span) -> Stmt:
        return Atomic(kind=kind, buffer=target.buffer, indices=place.indices, value=read, order=order, span=span)

    tiles.each_element(cx, target, value, update)


def _require_shared(name: str, buffer: Buffer) -> None:
    if buffer.scope not in (Scope.GLOBAL, Scope.SHARED):
        message = f"{name}: `{buffer.name}` is no memory that threads share"
        raise Fault("T2C-F023", message, help="assign to the element")


def _require_type(name: str, kind: Reduction | None, buffer: Buffer) -> None:
    """An element of at least 16 bits; bits are combined of integers."""
    dtype = buffer.dtype
    if dtype.bits < _NARROWEST or dtype.kind == "bool":
        raise Fault("T2C-F023", f"{name}: no machine updates {dtype} atomically", help="use 16 bits or more")
    if kind in (Reduction.BITAND, Reduction.BITOR, Reduction.BITXOR) and not dtype.is_int:
        raise Fault("T2C-F023", f"{name} combines the bits of integers, and `{buffer.name}` holds {dtype}")


def _element(
    cx: Context, name: str, kind: Reduction | None, dst: object, value: object, order: str, *, returns: bool = False
) -> Var | None:
    """The update of one element; gives what was there before where it is asked for."""
    place = _place(name, dst, kind)
    if returns and isinstance(place, Placed):
        what = f"{name} with `return_prev` of a placed tensor"
        raise Fault("T2C-F011", f"{what} is not supported yet", help="leave it out")
    assert isinstance(place.buffer, Buffer)
    previous = cx.recorder.variable("previous", place.dtype, Role.THREAD) if returns else None
    _emit_element(cx, kind, place, as_number(value, f"the value of {name}"), order, previous)
    return previous


def _place(name: str, dst: object, kind: Reduction | None = None) -> Load:
    """The element that is updated."""
    if not isinstance(dst, Load):
        raise Fault("T2C-F023", f"{name} takes an element and a number, or two tiles, not {describe(dst)}")
    assert isinstance(dst.buffer, Buffer)
    _require_shared(name, dst.buffer)
    _require_type(name, kind, dst.buffer)
    return dst


def _emit_element(
    cx: Context, kind: Reduction | None, dst: Load, value: Expr, order: str = "", previous: Var | None = None
) -> None:
    assert isinstance(dst.buffer, Buffer)
    stmt = Atomic(
        kind=kind,
        buffer=dst.buffer,
        indices=dst.indices,
        value=value,
        order=order,
        previous=previous,
        **cx.recorder.take().fields,
    )
    cx.recorder.emit(guarded(dst, stmt))


def atomic_load(cx: Context, src: object, memory_order: object = None) -> object:
    """`T.atomic_load(element, memory_order)`: what is there now, in one step."""
    cx.recorder.require_kernel("T.atomic_load")
    orders = ("relaxed", "consume", "acquire", "seq_cst")
    order = _order("T.atomic_load", memory_order, default="seq_cst", allowed=orders)
    place = _place("T.atomic_load", src)
    return cx.expression(Call(place.dtype, f"atomic_load_{order}".rstrip("_"), (place,)))


def atomic_store(cx: Context, dst: object, value: object, memory_order: object = None) -> None:
    """`T.atomic_store(element, value, memory_order)`: writes in one step."""
    cx.recorder.require_kernel("T.atomic_store")
    orders = ("relaxed", "release", "seq_cst")
    order = _order("T.atomic_store", memory_order, default="seq_cst", allowed=orders)
    _element(cx, "T.atomic_store", None, dst, value, order)


def _packed(
    name: str,
    width: int,
    cx: Context,
    /,
    dst: object,
    value: object,
    memory_order: object = None,
    return_prev: object = False,
) -> object:
    """`T.atomic_addx2(dst, src)` and x4: as many elements from both places on."""
    cx.recorder.require_kernel(name)
    order = _order(name, memory_order)
    first, added = (_first(cx, name, side, width) for side in (dst, value))
    at, kept = cx.recorder.take(), None
    if as_flag(return_prev, f"`return_prev` of {name}"):
        kept = cx.recorder.allocate_at(at, "previous", (int_const(width),), first.dtype, Scope.LOCAL)
    with cx.recorder.block() as body:
        lane = cx.recorder.variable("lane", INT32, Role.LOOP)
        cx.recorder.begin(at.span, (), "")
        previous = None if kept is None else cx.recorder.variable("before", first.dtype, Role.THREAD)
        _emit_element(cx, Reduction.SUM, _shifted(first, lane), _shifted(added, lane), order, previous)
        if kept is not None and previous is not None:
            cx.recorder.emit(Store(buffer=kept, indices=(lane,), value=previous, span=at.span))
    cx.recorder.emit(
        Loop(
            kind=LoopKind.UNROLL,
            var=lane,
            start=int_const(0),
            stop=int_const(width),
            step=int_const(1),
            body=tuple(body),
            **at.fields,
        )
    )
    return kept


def _first(cx: Context, name: str, side: object, width: int) -> Load:
    """The first element of a vector: it is named itself, or a slice of the vector is."""
    if isinstance(side, Buffer | View):
        region = as_region(cx, side, f"a side of {name}")
        sizes = [static_value(part.extent) for part in region.ranges]
        if sizes == [1] * (len(sizes) - 1) + [width]:
            return Load(region.buffer.dtype, region.buffer, tuple(part.start for part in region.ranges))
    if isinstance(side, Lanes) and len(side.parts) == width and _is_row(side.parts):
        side = side.parts[0]
    if not isinstance(side, Load):
        message = f"{name} takes two elements, or slices of {width}: where to add, and what; not {describe(side)}"
        raise Fault("T2C-F023", message)
    return side


def _is_row(parts: Sequence[Expr]) -> bool:
    """Whether elements are next to one another."""
    first = parts[0]
    return isinstance(first, Load) and all(
        isinstance(part, Load)
        and part.buffer is first.buffer
        and part.indices[:-1] == first.indices[:-1]
        and number_of(difference(part.indices[-1], first.indices[-1])) == lane
        for lane, part in enumerate(parts)
    )


def _shifted(load: Load, lane: Var) -> Load:
    """The element `lane` places further along the last dimension."""
    if isinstance(load, Placed):
        raise Fault("T2C-F011", "vectors of a placed tensor are not supported yet", help="write T.atomic_add")
    return Load(load.dtype, load.buffer, (*load.indices[:-1], add("+", load.indices[-1], lane)))


def sync_threads(cx: Context, barrier_id: object = None, arrive_count: object = None) -> None:
    """`T.sync_threads()`: a barrier of the whole block."""
    cx.recorder.require_kernel("T.sync_threads")
    if barrier_id is not None or arrive_count is not None:
        barriers.sync_threads(cx, barrier_id, arrive_count)
        return
    if cx.recorder.parallel:
        raise Fault("T2C-F026", "T.sync_threads cannot be inside T.Parallel")
    cx.recorder.emit(Sync(**cx.recorder.take().fields))


FUNCTIONS: dict[str, Callable[..., object]] = {
    "atomic_add": partial(_atomic, "T.atomic_add", Reduction.SUM),
    "atomic_max": partial(_atomic, "T.atomic_max", Reduction.MAX),
    "atomic_min": partial(_atomic, "T.atomic_min", Reduction.MIN),
    "atomic_or": partial(_atomic, "T.atomic_or", Reduction.BITOR),
    "atomic_load": atomic_load,
    "atomic_store": atomic_store,
    "atomic_addx2": partial(_packed, "T.atomic_addx2", 2),
    "atomic_addx4": partial(_packed, "T.atomic_addx4", 4),
    "sync_threads": sync_threads,
}
