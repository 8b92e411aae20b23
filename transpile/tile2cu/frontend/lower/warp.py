"""What the threads of a warp or of a block tell one another: shuffles, votes and reductions of scalars."""

import math
from collections.abc import Callable
from functools import partial

from tile2cu.core.dtype import BOOL, INT32, UINT32, UINT64, DType
from tile2cu.core.expr import Binary, Call, Expr, Load, Role, Var, binary, int_const, static_value
from tile2cu.core.program import Assign, Buffer, Declare, Let, Loop, LoopKind, Scope, Stmt, Store
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.effect import perform
from tile2cu.frontend.lower.operand import as_count, as_flag, as_integer, as_number
from tile2cu.frontend.lower.thread import thread_index
from tile2cu.frontend.values import Arguments, Function, Reducer, describe

_ALL_LANES = (0xFFFFFFFF, -1, 2**64 - 1)
_REDUCTIONS = {"+": "sum", "&": "bitand", "|": "bitor", "max": "max", "min": "min"}


def _require(cx: Context, name: str) -> None:
    cx.recorder.require_kernel(name)
    if cx.recorder.parallel:
        raise Fault(
            "T2C-F026",
            f"{name} works among threads; it cannot be inside T.Parallel, whose elements tile2cu spreads over them",
            help="write the loop over the thread index, T.get_thread_binding()",
        )


def _lanes(cx: Context, mask: object, name: str) -> tuple[Expr, ...]:
    """The argument that names the lanes which take part; none where all of the warp do."""
    lanes = as_integer(mask, f"`mask` of {name}")
    number = static_value(lanes)
    if number in _ALL_LANES:
        return ()
    if number == 0:
        raise Fault("T2C-F023", f"`mask` of {name} has no lane")
    if cx.target.warp_size != 32:
        raise Fault(
            "T2C-F011",
            f"{name} among a part of a warp's lanes is not supported on AMD",
            help="let all lanes take part, and leave `mask` out: choose values with T.if_then_else",
        )
    return (lanes if lanes.dtype is UINT32 else Call(UINT32, "cast", (lanes,)),)


def _width(cx: Context, width: object, name: str) -> str:
    """The template argument for groups of fewer lanes than a warp; none for whole warps."""
    if width is None:
        return ""
    lanes = as_count(width, f"`width` of {name}", least=1)
    if lanes & (lanes - 1) or lanes > cx.target.warp_size:
        raise Fault("T2C-F023", f"`width` of {name} is a power of two up to {cx.target.warp_size}, not {lanes}")
    return "" if lanes == cx.target.warp_size else f"<{lanes}>"


def _shuffle(
    name: str, function: str, cx: Context, /, value: object, lane: object, width: object = None, mask: object = -1
) -> object:
    """`T.shfl_sync(value, lane)` and its kin: the value of another lane."""
    _require(cx, name)
    lanes = _lanes(cx, mask, name)
    what, where = as_number(value, f"the value of {name}"), as_integer(lane, f"the lane of {name}")
    return cx.expression(Call(what.dtype, function + _width(cx, width, name), (what, where, *lanes)))


def _tvm_shuffle(
    name: str,
    function: str,
    cx: Context,
    /,
    mask: object,
    value: object,
    lane: object,
    width: object,
    warp_size: object,
) -> object:
    """The same in TVM's order of arguments."""
    return _shuffle(name, function, cx, value, lane, width, mask)


def _predicate(value: object, name: str) -> Expr:
    written = as_number(value, f"the predicate of {name}")
    return written if written.dtype is BOOL else binary("!=", written, int_const(0))


def _vote(name: str, function: str, dtype: DType, cx: Context, /, predicate: object, mask: object = -1) -> object:
    """`T.any_sync(p)` and its kin: what the lanes of the warp say."""
    _require(cx, name)
    lanes = _lanes(cx, mask, name)
    return cx.expression(Call(dtype, function, (_predicate(predicate, name), *lanes)))


def _block_vote(name: str, function: str, cx: Context, /, predicate: object) -> object:
    """`T.syncthreads_count(p)` and its kin: a barrier of the block that counts."""
    _require(cx, name)
    return cx.expression(Call(INT32, function, (_predicate(predicate, name),)))


def _match(name: str, function: str, cx: Context, /, value: object, mask: object = -1) -> object:
    """`T.match_any_sync(v)`: the lanes that bring the same value."""
    _require(cx, name)
    lanes = _lanes(cx, mask, name)
    found: Expr = Call(UINT64, function, (as_number(value, f"the value of {name}"), *lanes))
    return cx.expression(Call(UINT32, "cast", (found,)))


def active_mask(cx: Context) -> object:
    """`T.activemask()`: the lanes that are there, where all of the warp come."""
    _require(cx, "T.activemask")
    return Call(UINT64, "ballot", (binary("==", int_const(0), int_const(0)),))


def _warp_reduce(kind: str, cx: Context, /, value: object) -> object:
    """`T.warp_reduce_sum(x)`: the sum of the lanes' values, in all of them."""
    name = f"T.warp_reduce_{kind}"
    _require(cx, name)
    what = as_number(value, f"the value of {name}")
    if kind.startswith("bit") and what.dtype.is_float:
        raise Fault("T2C-F018", f"{name} takes integers, not {what.dtype}")
    return cx.expression(Call(what.dtype, f"warp_{kind}", (what,)))


def shuffle_elect(cx: Context, thread_extent: object) -> object:
    """`T.shuffle_elect(n)`: true in one thread of each n, the first; of the block where n is 0."""
    cx.recorder.require_kernel("T.shuffle_elect")
    group = as_count(thread_extent, "`thread_extent` of T.shuffle_elect")
    thread: Expr = Call(INT32, "thread", ())
    return binary("==", binary("%", thread, int_const(group)) if group else thread, int_const(0))


def sync_warp(cx: Context, mask: object = -1) -> None:
    """`T.sync_warp()`: waits for the lanes of the warp and orders their accesses to memory."""
    _require(cx, "T.sync_warp")
    perform(cx, Call(INT32, "sync_warp", _lanes(cx, -1 if mask is None else mask, "T.sync_warp")))


def comm_reducer(cx: Context, combine: object, identity: object) -> object:
    """`T.comm_reducer(lambda x, y: x + y, [0])`: how values are combined, for T.tvm_thread_allreduce."""
    if not isinstance(combine, Function):
        raise Fault("T2C-F023", f"T.comm_reducer takes a function of two values, not {describe(combine)}")
    pair = tuple(Var(INT32, f"operand {side}", Role.LET) for side in "ab")
    combined = cx.call_function(cx, combine, Arguments(pair))
    operator = combined.op if isinstance(combined, Binary) else getattr(combined, "function", "")
    operands = getattr(combined, "args", None) or (getattr(combined, "lhs", None), getattr(combined, "rhs", None))
    known = operator in _REDUCTIONS and set(operands) == set(pair)
    return Reducer(_REDUCTIONS[operator] if known else "", combine)


def thread_allreduce(
    cx: Context, size: object, value: object, condition: object, out: object, *axes: object, dtype: object = None
) -> None:
    """`T.tvm_thread_allreduce(1, value, True, out[0], tx)`: all threads' values along an axis, in each."""
    name = "T.tvm_thread_allreduce"
    _require(cx, name)
    if cx.recorder.reducer is None:
        raise Fault("T2C-F025", f'{name} is outside of `with T.attr(T.comm_reducer(...), "reduce_scope", ...)`')
    if not isinstance(out, Load) or not as_flag(condition, f"the condition of {name}"):
        raise Fault("T2C-F023", f"{name} writes an element of a private array, with the condition True")
    what = as_number(value, f"the value of {name}")
    axis = _axis_of(cx, axes)
    shape = cx.recorder.thread_shape
    lanes = shape[axis] if axis < len(shape) else 1
    whole_warps = math.prod(shape) % cx.target.warp_size == 0
    neighbours = axis == 0 and whole_warps and lanes & (lanes - 1) == 0 and lanes <= cx.target.warp_size
    if lanes > 1 and not (neighbours and cx.recorder.reducer.kind):
        what = _through_shared(cx, what, axis)
    elif lanes > 1:
        what = Call(what.dtype, f"warp_{cx.recorder.reducer.kind}<{lanes}>", (what,))
    assert isinstance(out.buffer, Buffer)
    _emit(cx, Store, buffer=out.buffer, indices=out.indices, value=cx.expression(what))


def _through_shared(cx: Context, value: Expr, axis: int) -> Expr:
    """The values of threads that are no neighbours in a warp, combined one after the other by each of them."""
    assert cx.recorder.reducer is not None
    shape, dtype = cx.recorder.thread_shape, value.dtype
    place = cx.recorder.peek()
    count, stride = shape[axis], math.prod(shape[:axis])
    parts = cx.recorder.allocate_at(place, "parts", (int_const(math.prod(shape)),), dtype, Scope.SHARED)
    thread: Expr = Call(INT32, "thread", ())
    _emit(cx, Store, buffer=parts, indices=(thread,), value=value)
    combined = cx.recorder.variable("combined", dtype, Role.MUTABLE)
    first = binary("-", thread, binary("*", thread_index(cx, axis), int_const(stride)))
    _emit(cx, Declare, var=combined, init=Load(dtype, parts, (first,)))
    other = cx.recorder.variable("other", INT32, Role.LOOP)
    element = Load(dtype, parts, (binary("+", first, binary("*", other, int_const(stride))),))
    result = _combined(cx, cx.recorder.reducer, combined, element)
    step = Assign(var=combined, value=result, span=place.span)
    bounds = {"start": int_const(1), "stop": int_const(count), "step": int_const(1)}
    _emit(cx, Loop, kind=LoopKind.SERIAL, var=other, body=(step,), **bounds)
    return combined


def _combined(cx: Context, reducer: Reducer, *both: Expr) -> Expr:
    """Two values combined."""
    if reducer.kind in ("max", "min"):
        return Call(both[0].dtype, reducer.kind, both)
    operator = next((op for op, word in _REDUCTIONS.items() if word == reducer.kind), "")
    if operator:
        return binary(operator, *both)
    return as_number(cx.call_function(cx, reducer.combine, Arguments(both)), "what T.comm_reducer combines")


def _emit(cx: Context, make: Callable[..., Stmt], **parts: object) -> None:
    cx.recorder.emit(make(**parts, **cx.recorder.take().fields))


def _axis_of(cx: Context, axes: tuple[object, ...]) -> int:
    """The axis of threads along which values are combined; one past the last where it has a single thread."""
    shape = cx.recorder.thread_shape
    known = {thread_index(cx, axis): axis for axis in range(len(shape))}
    lets = {let.var: let.value for let in cx.recorder.statements if isinstance(let, Let)}
    found = set()
    for axis in axes:
        written = as_number(axis, "an axis of T.tvm_thread_allreduce")
        written = lets.get(written, written) if isinstance(written, Var) else written
        if written not in known and static_value(written) != 0:
            raise Fault("T2C-F023", "an axis of T.tvm_thread_allreduce is a thread index of T.get_thread_binding")
        found.add(known.get(written, len(shape)))
    wide = [axis for axis in found if axis < len(shape) and shape[axis] > 1]
    if len(wide) > 1:
        raise Fault(
            "T2C-F011",
            "T.tvm_thread_allreduce along several axes is not supported yet",
            help="reduce along one axis after the other",
        )
    return wide[0] if wide else len(shape)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "shfl_sync": partial(_shuffle, "T.shfl_sync", "shuffle"),
    "shfl_xor": partial(_shuffle, "T.shfl_xor", "shuffle_xor"),
    "shfl_up": partial(_shuffle, "T.shfl_up", "shuffle_up"),
    "shfl_down": partial(_shuffle, "T.shfl_down", "shuffle_down"),
    "tvm_warp_shuffle": partial(_tvm_shuffle, "T.tvm_warp_shuffle", "shuffle"),
    "tvm_warp_shuffle_up": partial(_tvm_shuffle, "T.tvm_warp_shuffle_up", "shuffle_up"),
    "tvm_warp_shuffle_down": partial(_tvm_shuffle, "T.tvm_warp_shuffle_down", "shuffle_down"),
    "any_sync": partial(_vote, "T.any_sync", "any_of_warp", INT32),
    "all_sync": partial(_vote, "T.all_sync", "all_of_warp", INT32),
    "ballot_sync": partial(_vote, "T.ballot_sync", "ballot", UINT64),
    "ballot": partial(_vote, "T.ballot", "ballot", UINT64),
    "activemask": active_mask,
    "match_any_sync": partial(_match, "T.match_any_sync", "match_any"),
    "match_all_sync": partial(_match, "T.match_all_sync", "match_all"),
    "syncthreads_count": partial(_block_vote, "T.syncthreads_count", "count_of_block"),
    "syncthreads_and": partial(_block_vote, "T.syncthreads_and", "all_of_block"),
    "syncthreads_or": partial(_block_vote, "T.syncthreads_or", "any_of_block"),
    **{f"warp_reduce_{kind}": partial(_warp_reduce, kind) for kind in ("sum", "max", "min", "bitand", "bitor")},
    "shuffle_elect": shuffle_elect,
    "sync_warp": sync_warp,
    "comm_reducer": comm_reducer,
    "tvm_thread_allreduce": thread_allreduce,
}
