"""T.Parallel loops with extents that are known only at run time."""

import math
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, Load, Role, Var, binary, int_const, static_value, walk
from tile2cu.core.program import If, Let, Loop, LoopKind, Parallel, Stmt
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Demand
from tile2cu.frontend.record import Place
from tile2cu.frontend.uses import solvable_sizes


def is_open(extents: Sequence[Expr]) -> bool:
    """Whether all of the extents are known only at run time."""
    return None in map(static_value, extents)


def ask(cx: Context, extents: Sequence[Expr], what: str) -> None:
    """Asks the file's driver for the open sizes of extents; what it does not give, a call's tensors give."""
    for extent in extents:
        sizes = [part.name for part in walk(extent) if isinstance(part, Var) and part.role is Role.SIZE]
        if not cx.bindings.demanded.issuperset(sizes):
            told = solvable_sizes(cx.recorder.params.values())
            raise Demand(what, tuple(dict.fromkeys(sizes)), optional=told.issuperset(sizes))


def over(
    cx: Context, extents: Sequence[Expr], names: Sequence[str], at: Place, body: Callable[[tuple[Var, ...]], None]
) -> None:
    """Records a loop over these extents, and by `body` what is in it: iterations of one element or more per thread.

    The last extent that is open is the one that is cut into iterations; those before it are serial loops.
    """
    sizes = [static_value(extent) for extent in extents]
    *outer, cut = [dim for dim, size in enumerate(sizes) if size is None]
    end = _end(cx, f"{names[cut]}_end", extents[cut], at)
    width = max(1, math.prod(cx.recorder.thread_shape) // math.prod(int(size) for size in sizes if size is not None))
    with cx.recorder.scope():
        turn = cx.recorder.variable("turn", INT32, Role.LOOP)
        indices = {dim: cx.recorder.variable(names[dim], INT32, Role.LOOP) for dim in outer}
        cx.recorder.depth += 1
        cx.recorder.parallel += 1
        with cx.recorder.block() as inner:
            cx.recorder.begin(at.span, (), "")
            inside_turn = (dim for dim in range(len(names)) if dim not in outer)
            lanes = {dim: int_const(width) if dim == cut else extents[dim] for dim in inside_turn}
            made = {dim: _lane(cx, "lane" if dim == cut else names[dim], extent) for dim, extent in lanes.items()}
            place = binary("+", binary("*", turn, int_const(width)), made[cut])
            indices |= made | {cut: cx.recorder.variable(names[cut], INT32, Role.LET)}
            cx.recorder.emit(Let(var=indices[cut], value=place, span=at.span))
            with cx.recorder.block() as inside:
                body(tuple(indices[dim] for dim in range(len(names))))
            cx.recorder.emit(If(condition=binary("<", indices[cut], end), then=tuple(inside), span=at.span))
        cx.recorder.parallel -= 1
        cx.recorder.depth -= 1
    stmt: Stmt = Parallel(vars=tuple(made.values()), extents=tuple(lanes.values()), body=tuple(inner), span=at.span)
    turns = Call(INT32, "ceildiv", (end, int_const(width)))
    for var, stop in ((turn, turns), *((indices[dim], extents[dim]) for dim in reversed(outer))):
        start, step = int_const(0), int_const(1)
        stmt = Loop(kind=LoopKind.SERIAL, var=var, start=start, stop=stop, step=step, body=(stmt,), span=at.span)
    cx.recorder.emit(replace(stmt, **at.fields))


def _lane(cx: Context, name: str, extent: Expr) -> Var:
    lane = cx.recorder.variable(name, INT32, Role.PARALLEL)
    cx.recorder.ranges[lane] = extent
    return lane


def _end(cx: Context, name: str, extent: Expr, at: Place) -> Expr:
    """The extent; one that is read from memory is read once, before the loop."""
    if not any(isinstance(part, Load) for part in walk(extent)):
        return extent
    end = cx.recorder.variable(name, INT32, Role.LET)
    cx.recorder.emit(Let(var=end, value=extent, span=at.span))
    return end
