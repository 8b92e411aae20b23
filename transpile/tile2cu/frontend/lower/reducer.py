"""T.alloc_reducer and what updates it: values of many elements that are combined into one."""

from collections.abc import Callable

from tile2cu.core.expr import Const, Load
from tile2cu.core.program import Atomic, Buffer, Copy, Fill, Reduction, Region, Scope
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.operand import as_buffer, as_dtype, as_number, as_static_shape, as_word, place
from tile2cu.frontend.values import Allocation, describe

_KINDS = {
    kind.value: kind
    for kind in (
        Reduction.SUM,
        Reduction.MAX,
        Reduction.MIN,
        Reduction.BITAND,
        Reduction.BITOR,
        Reduction.BITXOR,
    )
}


def alloc_reducer(cx: Context, shape: object, dtype: object, op: object = "sum", replication: object = None) -> object:
    """`T.alloc_reducer(shape, dtype, op)`: a fragment whose updates are combined. `replication` is a hint."""
    cx.recorder.require_kernel("T.alloc_reducer")
    kind = _KINDS[as_word(op, "`op` of T.alloc_reducer", _KINDS)]
    extents = as_static_shape(cx, shape, "the shape of T.alloc_reducer")
    return Allocation(extents, as_dtype(dtype, "the type of T.alloc_reducer"), Scope.FRAGMENT, reducer=kind)


def reducer_init(cx: Context, reducer: object, init: object = None) -> None:
    """`T.reducer_init(acc, init)`: the value to start from; the one that changes nothing where it is left out."""
    acc, kind = _reducer(cx, reducer, "T.reducer_init")
    number = Const(acc.dtype, kind.identity(acc.dtype), weak=False)
    value = number if init is None else as_number(init, "the value of T.reducer_init")
    cx.recorder.emit(Fill(dst=Region.all_of(acc, place(cx)), value=value, **cx.recorder.take().fields))


def reducer_update(cx: Context, element: object, value: object) -> None:
    """`T.reducer_update(acc[i], value)`: one more value, in T.Parallel."""
    if not isinstance(element, Load):
        raise Fault("T2C-F023", f"T.reducer_update takes an element of a reducer, not {describe(element)}")
    acc, kind = _reducer(cx, element.buffer, "T.reducer_update")
    if not cx.recorder.parallel:
        raise Fault(
            "T2C-F026",
            "T.reducer_update is outside of T.Parallel, where it is ambiguous which threads have a value",
            help="put it into `for i in T.Parallel(...):`, whose iterations give a value each",
        )
    cx.recorder.emit(
        Atomic(
            kind=kind,
            buffer=acc,
            indices=element.indices,
            value=as_number(value, "the value of T.reducer_update"),
            **cx.recorder.take().fields,
        )
    )


def finalize_reducer(cx: Context, reducer: object, dst: object = None, batch: object = 1) -> None:
    """`T.finalize_reducer(acc, dst)`: the combined values, in every thread that needs them; in `dst` if it is given."""
    acc, _ = _reducer(cx, reducer, "T.finalize_reducer")
    if dst is None:
        return  # each update is combined where it is
    target = as_buffer(cx, dst, "the destination of T.finalize_reducer")
    cx.recorder.emit(
        Copy(src=Region.all_of(acc, place(cx)), dst=Region.all_of(target, place(cx)), **cx.recorder.take().fields)
    )


def _reducer(cx: Context, value: object, name: str) -> tuple[Buffer, Reduction]:
    buffer = as_buffer(cx, value, f"the reducer of {name}")
    if buffer.reducer is None:
        raise Fault("T2C-F023", f"{name} takes a tile from T.alloc_reducer, and `{buffer.name}` is none")
    return buffer, buffer.reducer


FUNCTIONS: dict[str, Callable[..., object]] = {
    "alloc_reducer": alloc_reducer,
    "reducer_init": reducer_init,
    "reducer_update": reducer_update,
    "finalize_reducer": finalize_reducer,
}
