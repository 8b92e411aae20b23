"""Atomic updates, of one element or of a whole tile, and the user's own barriers."""

from collections.abc import Callable

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, Load, Role, Var, int_const
from tile2cu.core.expr import binary as add
from tile2cu.core.program import Atomic, AtomicTile, Buffer, Loop, LoopKind, Reduction, Scope, Sync
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower import barriers
from tile2cu.frontend.lower.copy import operands
from tile2cu.frontend.lower.operand import as_flag, as_number
from tile2cu.frontend.lower.spread import is_placed, spread
from tile2cu.frontend.placement import guarded
from tile2cu.frontend.values import Placed, View, describe

_ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")
_NARROWEST = 16  # bits of the narrowest element that all machines update atomically


def _atomic(name: str, kind: Reduction) -> Callable[..., object]:
    def run(
        cx: Context,
        dst: object,
        value: object,
        memory_order: object = None,
        return_prev: object = False,
        use_tma: object = False,
    ) -> object:
        """`T.atomic_add(dst, value)`: of an element, or of tiles by T.copy's rules."""
        cx.recorder.require_kernel(name)
        order, returns = _order(name, memory_order), as_flag(return_prev, f"`return_prev` of {name}")
        if not isinstance(value, Buffer | View):
            return _element(cx, name, kind, dst, value, order, returns=returns)
        if returns or order:
            what = "gives no old values" if returns else "orders nothing else"
            raise Fault("T2C-F023", f"{name} of tiles {what}", help="write a T.Parallel loop over its elements")
        _tile(cx, name, kind, dst, value)
        return None

    return run


def _order(name: str, order: object, *, default: str = "relaxed", allowed: tuple[str, ...] = _ORDERS) -> str:
    """The memory order by its name; empty for relaxed, which orders nothing else."""
    found = default if order is None else order
    if found not in allowed:
        raise Fault("T2C-F023", f"`memory_order` of {name} is one of {', '.join(allowed)}")
    return "" if found == "relaxed" else str(found)


def _tile(cx: Context, name: str, kind: Reduction, dst: object, value: object) -> None:
    cx.recorder.require_tile_operation(name)
    source, target = operands(cx, name, value, dst)
    if target.buffer.scope not in (Scope.GLOBAL, Scope.SHARED):
        raise Fault("T2C-F023", f"{name}: the destination is {describe(target.buffer)}", help="write T.Parallel")
    _require_type(name, kind, target.buffer)
    if is_placed(cx, source, target):
        spread(cx, source, target, kind)
        return
    at = cx.recorder.take()
    cx.recorder.emit(AtomicTile(kind=kind, src=source, dst=target, **at.fields))


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
    if dst.buffer.scope not in (Scope.GLOBAL, Scope.SHARED):
        raise Fault(
            "T2C-F023", f"{name}: `{dst.buffer.name}` is no memory that threads share", help="assign to the element"
        )
    _require_type(name, kind, dst.buffer)
    return dst


def _emit_element(
    cx: Context, kind: Reduction | None, dst: Load, value: Expr, order: str = "", previous: Var | None = None
) -> None:
    assert isinstance(dst.buffer, Buffer)
    at = cx.recorder.take()
    stmt = Atomic(
        kind=kind,
        buffer=dst.buffer,
        indices=dst.indices,
        value=value,
        order=order,
        previous=previous,
        **at.fields,
    )
    cx.recorder.emit(guarded(dst, stmt))


def atomic_load(cx: Context, src: object, memory_order: object = None) -> object:
    """`T.atomic_load(element, memory_order)`: what is there now, in one step."""
    cx.recorder.require_kernel("T.atomic_load")
    orders = ("relaxed", "acquire", "seq_cst")
    order = _order("T.atomic_load", memory_order, default="seq_cst", allowed=orders)
    place = _place("T.atomic_load", src)
    return cx.expression(Call(place.dtype, f"atomic_load_{order}".rstrip("_"), (place,)))


def atomic_store(cx: Context, dst: object, value: object, memory_order: object = None) -> object:
    """`T.atomic_store(element, value, memory_order)`: writes in one step."""
    cx.recorder.require_kernel("T.atomic_store")
    orders = ("relaxed", "release", "seq_cst")
    order = _order("T.atomic_store", memory_order, default="seq_cst", allowed=orders)
    _element(cx, "T.atomic_store", None, dst, value, order)
    return None


def _packed(name: str, width: int) -> Callable[..., object]:
    def run(
        cx: Context, dst: object, value: object, memory_order: object = None, return_prev: object = False
    ) -> object:
        """`T.atomic_addx2(dst, src)` and x4: as many elements from both places on."""
        cx.recorder.require_kernel(name)
        order = _order(name, memory_order)
        if as_flag(return_prev, f"`return_prev` of {name}"):
            raise Fault("T2C-F023", f"{name} gives no old values", help="write T.atomic_add of each element")
        if not isinstance(dst, Load) or not isinstance(value, Load):
            raise Fault("T2C-F023", f"{name} takes two elements: where to add, and what")
        at = cx.recorder.take()
        with cx.recorder.block() as body:
            lane = cx.recorder.variable("lane", INT32, Role.LOOP)
            cx.recorder.begin(at.span, (), "")
            _emit_element(cx, Reduction.SUM, _shifted(dst, lane), _shifted(value, lane), order)
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
        return None

    return run


def _shifted(load: Load, lane: Var) -> Load:
    """The element `lane` places further along the last dimension."""
    if isinstance(load, Placed):
        raise Fault("T2C-F011", "packets of a placed tensor are not supported yet", help="write T.atomic_add")
    return Load(load.dtype, load.buffer, (*load.indices[:-1], add("+", load.indices[-1], lane)))


def sync_threads(cx: Context, barrier_id: object = None, arrive_count: object = None) -> object:
    """`T.sync_threads()`: a barrier of the whole block."""
    cx.recorder.require_kernel("T.sync_threads")
    if barrier_id is not None or arrive_count is not None:
        barriers.sync_threads(cx, barrier_id, arrive_count)
        return None
    if cx.recorder.parallel:
        raise Fault("T2C-F026", "T.sync_threads cannot stand inside T.Parallel")
    at = cx.recorder.take()
    cx.recorder.emit(Sync(**at.fields))
    return None


FUNCTIONS: dict[str, Callable[..., object]] = {
    "atomic_add": _atomic("T.atomic_add", Reduction.SUM),
    "atomic_max": _atomic("T.atomic_max", Reduction.MAX),
    "atomic_min": _atomic("T.atomic_min", Reduction.MIN),
    "atomic_or": _atomic("T.atomic_or", Reduction.BITOR),
    "atomic_load": atomic_load,
    "atomic_store": atomic_store,
    "atomic_addx2": _packed("T.atomic_addx2", 2),
    "atomic_addx4": _packed("T.atomic_addx4", 4),
    "sync_threads": sync_threads,
}
