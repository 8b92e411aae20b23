"""Loops of the program: T.serial, T.unroll, T.vectorized, T.Pipelined and T.Parallel."""

from collections.abc import Callable

from tile2cu.core.expr import Expr, int_const, static_value
from tile2cu.core.program import Break, Continue, LoopKind
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower import open_loop
from tile2cu.frontend.lower.operand import argument_name, as_count, as_integer, as_shape
from tile2cu.frontend.operators import static
from tile2cu.frontend.values import LoopFrame

PARALLEL = "parallel"
GRID = "grid"
PERSISTENT = "persistent"
_MOST_EXTENTS = 4  # of a loop over elements


def serial(cx: Context, start: object, stop: object = None, step: object = None) -> object:
    """`T.serial(start, stop, step)`; `range` of a kernel's body is the same."""
    cx.recorder.require_kernel("T.serial")
    return LoopFrame(LoopKind.SERIAL.value, _bounds("T.serial", start, stop, step))


def unroll(
    cx: Context,
    start: object,
    stop: object = None,
    step: object = None,
    explicit: object = False,
    unroll_factor: object = None,
) -> object:
    """`T.unroll(start, stop, step)`: a serial loop that the device compiler unrolls."""
    cx.recorder.require_kernel("T.unroll")
    return LoopFrame(LoopKind.UNROLL.value, _bounds("T.unroll", start, stop, step))


def vectorized(cx: Context, start: object, stop: object = None) -> object:
    """`T.vectorized(start, stop)`: a short loop that asks for wide memory accesses."""
    cx.recorder.require_kernel("T.vectorized")
    bounds = _bounds("T.vectorized", start, stop, None)
    for bound in bounds:
        static(bound, "a bound of T.vectorized")
    return LoopFrame(LoopKind.VECTORIZED.value, bounds)


def pipelined(
    cx: Context,
    start: object,
    stop: object = None,
    num_stages: object = 0,
    order: object = None,
    stage: object = None,
    sync: object = None,
    group: object = None,
) -> object:
    """`T.Pipelined(start, stop, num_stages)`: serial meaning; copies from global memory run ahead.

    A schedule given explicitly (`order`, `stage`, `sync`, `group`) is a hint: tile2cu makes its own.
    """
    cx.recorder.require_kernel("T.Pipelined")
    stages = as_count(num_stages, "`num_stages` of T.Pipelined")
    bounds = _bounds("T.Pipelined", start, stop, None)
    return LoopFrame(LoopKind.PIPELINED.value, bounds, stages, argument_name(cx, num_stages))


def _bounds(name: str, start: object, stop: object, step: object) -> tuple[Expr, ...]:
    """(start, stop, step) of a loop."""
    if stop is None:
        start, stop = 0, start
    first, last = as_integer(start, f"the start of {name}"), as_integer(stop, f"the end of {name}")
    stride = int_const(1) if step is None else as_integer(step, f"the step of {name}")
    if static_value(stride) == 0:
        raise Fault("T2C-F026", f"the step of {name} is 0")
    static(stride, f"the step of {name}")
    if static_value(first) == 0:
        first = int_const(0)  # a zero with a name, too: a loop from 0 does not print it, so that nothing would use it
    return first, last, stride


def parallel(
    cx: Context,
    *extents: object,
    coalesced_width: object = None,
    loop_layout: object = None,
    prefer_async: object = None,
    annotations: object = None,
) -> object:
    """`T.Parallel(M, N)`: all elements in parallel, spread over the block's threads. The options are hints."""
    cx.recorder.require_kernel("T.Parallel")
    if not extents:
        raise Fault("T2C-F026", "T.Parallel takes at least one extent")
    if len(extents) > _MOST_EXTENTS:
        raise Fault(
            "T2C-F026",
            f"T.Parallel has at most {_MOST_EXTENTS} extents, not {len(extents)}",
            help="write the outer ones as loops of T.serial, or two of them as one",
        )
    bounds = tuple(as_integer(extent, "an extent of T.Parallel") for extent in extents)
    open_loop.ask(cx, bounds, "an extent of T.Parallel")
    return LoopFrame(PARALLEL, bounds, laid_out=loop_layout is not None)


def grid(cx: Context, *extents: object) -> object:
    """`for i, j in T.grid(M, N)`: serial loops inside each other."""
    cx.recorder.require_kernel("T.grid")
    if not extents:
        raise Fault("T2C-F026", "T.grid takes at least one extent")
    return LoopFrame(GRID, tuple(as_integer(extent, "an extent of T.grid") for extent in extents))


def persistent(cx: Context, domain: object, wave_size: object, index: object, group_size: object = 8) -> object:
    """`for i, j in T.Persistent(domain, wave_size, index)`: a block's tiles, `wave_size` blocks in rotation.

    `group_size` only orders the tiles for the sake of the L2 cache: so many along the last dimension are a panel.
    """
    cx.recorder.require_kernel("T.Persistent")
    extents = as_shape(cx, domain, "the domain of T.Persistent")
    wave = as_integer(wave_size, "`wave_size` of T.Persistent")
    panel = as_integer(group_size, "`group_size` of T.Persistent")
    return LoopFrame(PERSISTENT, (*extents, wave, as_integer(index, "`index` of T.Persistent")), panel=panel)


def leave(cx: Context, word: str) -> None:
    """`break` or `continue`, by the `word` that the file has for it."""
    if cx.recorder.parallel:
        raise Fault("T2C-F026", f"`{word}` cannot be inside T.Parallel", help="put the rest into an `if`")
    if not cx.recorder.loops:
        raise Fault("T2C-F026", f"`{word}` is outside of any loop of the kernel")
    kind = Continue if word == "continue" else Break
    cx.recorder.emit(kind(**cx.recorder.take().fields))


def loop_break(cx: Context) -> None:
    """`T.loop_break()`: `break` of the innermost loop."""
    leave(cx, "T.loop_break()")


FUNCTIONS: dict[str, Callable[..., object]] = {
    "serial": serial,
    "Serial": serial,
    "unroll": unroll,
    "Unroll": unroll,
    "vectorized": vectorized,
    "Vectorized": vectorized,
    "Pipelined": pipelined,
    "Parallel": parallel,
    "parallel": parallel,
    "grid": grid,
    "Persistent": persistent,
    "loop_break": loop_break,
}
