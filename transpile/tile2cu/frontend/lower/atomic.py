"""Atomic updates, of one element or of a whole tile, and the user's own barriers."""

from collections.abc import Callable

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Expr, Load, Role, Var, int_const
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


def _atomic(name: str, kind: Reduction) -> Callable[..., object]:
    def run(
        cx: Context,
        dst: object,
        value: object,
        memory_order: object = None,
        return_prev: object = False,
        use_tma: object = False,
    ) -> object:
        """`T.atomic_add(dst, value)`: of an element, or of tiles by T.copy's rules. The order is a hint."""
        cx.recorder.require_kernel(name)
        if as_flag(return_prev, f"`return_prev` of {name}"):
            raise Fault("T2C-F011", f"{name} with `return_prev` is not supported yet", help="leave it out")
        if isinstance(value, Buffer | View):
            _tile(cx, name, kind, dst, value)
        else:
            _element(cx, name, kind, dst, value)
        return None

    return run


def _tile(cx: Context, name: str, kind: Reduction, dst: object, value: object) -> None:
    cx.recorder.require_tile_operation(name)
    source, target = operands(cx, name, value, dst)
    if target.buffer.scope not in (Scope.GLOBAL, Scope.SHARED):
        raise Fault("T2C-F023", f"{name}: the destination is {describe(target.buffer)}", help="write T.Parallel")
    if is_placed(cx, source, target):
        spread(cx, source, target, kind)
        return
    at = cx.recorder.take()
    cx.recorder.emit(
        AtomicTile(kind=kind, src=source, dst=target, span=at.span, comments=at.comments, trailing=at.trailing)
    )


def _element(cx: Context, name: str, kind: Reduction, dst: object, value: object) -> None:
    if not isinstance(dst, Load):
        raise Fault("T2C-F023", f"{name} takes an element and a number, or two tiles, not {describe(dst)}")
    _emit_element(cx, kind, dst, as_number(value, f"the value of {name}"))


def _emit_element(cx: Context, kind: Reduction, dst: Load, value: Expr) -> None:
    assert isinstance(dst.buffer, Buffer)
    at = cx.recorder.take()
    stmt = Atomic(
        kind=kind,
        buffer=dst.buffer,
        indices=dst.indices,
        value=value,
        span=at.span,
        comments=at.comments,
        trailing=at.trailing,
    )
    cx.recorder.emit(guarded(dst, stmt))


def _packed(name: str, width: int) -> Callable[..., object]:
    def run(cx: Context, dst: object, value: object, memory_order: object = None, **options: object) -> object:
        """`T.atomic_addx2(dst, src)` and x4: as many elements from both places on."""
        cx.recorder.require_kernel(name)
        if not isinstance(dst, Load) or not isinstance(value, Load):
            raise Fault("T2C-F023", f"{name} takes two elements: where to add, and what")
        at = cx.recorder.take()
        with cx.recorder.block() as body:
            lane = cx.recorder.variable("lane", INT32, Role.LOOP)
            cx.recorder.begin(at.span, (), "")
            _emit_element(cx, Reduction.SUM, _shifted(dst, lane), _shifted(value, lane))
        cx.recorder.emit(
            Loop(
                kind=LoopKind.UNROLL,
                var=lane,
                start=int_const(0),
                stop=int_const(width),
                step=int_const(1),
                body=tuple(body),
                span=at.span,
                comments=at.comments,
                trailing=at.trailing,
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
    cx.recorder.emit(Sync(span=at.span, comments=at.comments, trailing=at.trailing))
    return None


FUNCTIONS: dict[str, Callable[..., object]] = {
    "atomic_add": _atomic("T.atomic_add", Reduction.SUM),
    "atomic_max": _atomic("T.atomic_max", Reduction.MAX),
    "atomic_min": _atomic("T.atomic_min", Reduction.MIN),
    "atomic_or": _atomic("T.atomic_or", Reduction.BITOR),
    "atomic_addx2": _packed("T.atomic_addx2", 2),
    "atomic_addx4": _packed("T.atomic_addx4", 4),
    "sync_threads": sync_threads,
}
