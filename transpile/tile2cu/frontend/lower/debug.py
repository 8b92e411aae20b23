"""What a kernel states and checks while it runs: T.print, T.device_assert and `assert`."""

from collections.abc import Callable

from tile2cu.core.expr import Expr, static_value
from tile2cu.core.program import Assert, Buffer, Print, Scope
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.operand import as_buffer, as_number
from tile2cu.frontend.values import View, describe

_RANKS = {Scope.SHARED: 2, Scope.FRAGMENT: 3, Scope.LOCAL: 1}  # of what tl::print takes


def check(cx: Context, condition: Expr, message: object) -> None:
    """A check that every thread makes. Raises Fault T2C-F019 where it is known to fail."""
    if not isinstance(message, str):
        raise Fault("T2C-F023", f"the message of an assertion is a string, not {describe(message)}")
    cx.recorder.require_kernel("an assertion on a run-time value")
    known = static_value(condition)
    if known is not None and not known:
        raise Fault("T2C-F019", "the assertion fails" + (f": {message[:200]}" if message else ""))
    if known is None:
        cx.recorder.emit(Assert(condition=condition, message=message, **cx.recorder.take().fields))


def device_assert(cx: Context, condition: object, msg: object = "", no_stack_info: object = False) -> None:
    """`T.device_assert(condition, msg)`: ends the launch with an error where the condition does not hold."""
    check(cx, as_number(condition, "the condition of T.device_assert"), msg)


def print_(cx: Context, obj: object, msg: object = "", warp_group_id: object = 0, warp_id: object = 0) -> None:
    """`T.print(obj, msg)`: a number by each thread, or the elements of a tile once.

    Which thread prints a tile does not change what is printed: the last two arguments are not read.
    """
    cx.recorder.require_kernel("T.print")
    if not isinstance(msg, str):
        raise Fault("T2C-F023", f"`msg` of T.print is a string, not {describe(msg)}")
    what = _tile(cx, obj) if isinstance(obj, Buffer | View) else as_number(obj, "what T.print prints")
    cx.recorder.emit(Print(what=what, message=msg, **cx.recorder.take().fields))


def _tile(cx: Context, obj: Buffer | View) -> Buffer:
    cx.recorder.require_tile_operation("T.print of a tile")
    tile = as_buffer(cx, obj, "what T.print prints")
    if tile.rank > _RANKS.get(tile.scope, 0):
        raise Fault(
            "T2C-F023",
            f"T.print does not take {describe(tile)} with {tile.rank} dimensions",
            help="print single elements, `T.print(tile[i, j])`, or copy a part to a tile and print that",
        )
    return tile


FUNCTIONS: dict[str, Callable[..., object]] = {"device_assert": device_assert, "print": print_}
