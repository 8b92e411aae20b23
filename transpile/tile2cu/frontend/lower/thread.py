"""The indices of threads and blocks as numbers."""

import math
from collections.abc import Callable

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, binary, int_const
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
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


def _warp(name: str, divisor: int, *, remainder: bool) -> Callable[..., object]:
    def run(cx: Context, *options: object) -> object:
        """The index of a lane, a warp or a group of four warps."""
        cx.recorder.require_kernel(name)
        return binary("%" if remainder else "//", Call(INT32, "thread", ()), int_const(divisor))

    return run


FUNCTIONS: dict[str, Callable[..., object]] = {
    "get_thread_binding": get_thread_binding,
    "get_block_binding": get_block_binding,
    "thread_binding": thread_binding,
    "get_lane_idx": _warp("T.get_lane_idx", 32, remainder=True),
    "get_warp_idx": _warp("T.get_warp_idx", 32, remainder=False),
    "get_warp_idx_sync": _warp("T.get_warp_idx_sync", 32, remainder=False),
    "get_warp_group_idx": _warp("T.get_warp_group_idx", 128, remainder=False),
}
