"""The indices of threads and blocks as numbers."""

import math
from collections.abc import Callable

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, binary, int_const
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.leaving import Leave
from tile2cu.frontend.lower.operand import as_count

_AXES = ("x", "y", "z")


def thread_index(cx: Context, axis: int) -> Expr:
    """The index of a thread along x, y or z; blocks are launched with one dimension, x the fastest."""
    shape = cx.recorder.thread_shape
    if axis >= len(shape):
        return int_const(0)
    linear: Expr = Call(INT32, "thread", ())
    inner = math.prod(shape[:axis])
    index = binary("//", linear, int_const(inner))
    return index if axis == len(shape) - 1 else binary("%", index, int_const(shape[axis]))


def get_thread_binding(cx: Context, dim: object = 0) -> object:
    """`T.get_thread_binding(dim)`: threadIdx.x, y or z."""
    cx.recorder.require_kernel("T.get_thread_binding")
    return thread_index(cx, _axis(dim, "`dim` of T.get_thread_binding"))


def get_block_binding(cx: Context, dim: object = 0) -> object:
    """`T.get_block_binding(dim)`: blockIdx.x, y or z."""
    cx.recorder.require_kernel("T.get_block_binding")
    axis = _axis(dim, "`dim` of T.get_block_binding")
    blocks = cx.recorder.blocks
    return blocks[axis] if axis < len(blocks) else int_const(0)


def _axis(dim: object, what: str) -> int:
    axis = as_count(dim, what)
    if axis > 2:
        raise Fault("T2C-F023", f"{what} is 0, 1 or 2, not {axis}")
    return axis


def thread_binding(cx: Context, *bounds: object, thread: object = None, **options: object) -> object:
    """`T.thread_binding(n, thread="threadIdx.x")`: the index of the thread along an axis that T.Kernel has."""
    cx.recorder.require_kernel("T.thread_binding")
    names = [bound for bound in bounds if isinstance(bound, str)]
    name = thread if isinstance(thread, str) else names[0] if names else ""
    kind, _, axis = name.partition(".")
    if kind not in ("threadIdx", "blockIdx") or axis not in _AXES:
        raise Fault("T2C-F023", f"`thread` of T.thread_binding is threadIdx or blockIdx .x, .y or .z, not {name!r}")
    at = _AXES.index(axis)
    if kind == "threadIdx":
        return thread_index(cx, at)
    return get_block_binding(cx, at)


def launch_thread(cx: Context, thread: object, extent: object) -> object:
    """`T.launch_thread("threadIdx.x", n)` inside T.Kernel: the index along an axis of the block, of that extent."""
    if isinstance(thread, str) and thread.startswith("threadIdx.") and thread[-1] in _AXES:
        shape, at = cx.recorder.thread_shape, _AXES.index(thread[-1])
        known = shape[at] if at < len(shape) else 1
        if as_count(extent, "the extent of T.launch_thread") != known:
            raise Fault("T2C-F023", f"T.launch_thread states another extent than T.Kernel, whose {thread} has {known}")
    return thread_binding(cx, thread=thread)


def lane_index(cx: Context, warp_size: object = None) -> object:
    """`T.get_lane_idx()`: the number of a thread in its warp."""
    cx.recorder.require_kernel("T.get_lane_idx")
    return binary("%", Call(INT32, "thread", ()), int_const(_lanes(cx, warp_size)))


def warp_index(cx: Context, warp_size: object = None) -> object:
    """`T.get_warp_idx()`: the number of a thread's warp in its block."""
    cx.recorder.require_kernel("T.get_warp_idx")
    return binary("//", Call(INT32, "thread", ()), int_const(_lanes(cx, warp_size)))


def warp_group_index(cx: Context, warp_size: object = None, warps_per_group: object = 4) -> object:
    """`T.get_warp_group_idx()`: the number of a thread's group of four warps in its block."""
    cx.recorder.require_kernel("T.get_warp_group_idx")
    warps = as_count(warps_per_group, "`warps_per_group` of T.get_warp_group_idx", least=1)
    return binary("//", Call(INT32, "thread", ()), int_const(_lanes(cx, warp_size) * warps))


def _lanes(cx: Context, warp_size: object) -> int:
    return cx.target.warp_size if warp_size is None else as_count(warp_size, "`warp_size`", least=1)


def thread_return(cx: Context) -> None:
    """`T.thread_return()`: the thread is done."""
    cx.recorder.require_kernel("T.thread_return")
    cx.recorder.emit(Leave(**cx.recorder.take().fields))


FUNCTIONS: dict[str, Callable[..., object]] = {
    "thread_return": thread_return,
    "get_thread_binding": get_thread_binding,
    "launch_thread": launch_thread,
    "get_block_binding": get_block_binding,
    "thread_binding": thread_binding,
    "get_lane_idx": lane_index,
    "get_warp_idx": warp_index,
    "get_warp_idx_sync": warp_index,
    "get_warp_group_idx": warp_group_index,
}
