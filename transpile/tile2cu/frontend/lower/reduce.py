"""T.reduce_*: reductions of a tile along one dimension."""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from tile2cu.core.expr import Call, Const, Expr, Load, Role, Var, binary, int_const, static_value
from tile2cu.core.program import Assign, Buffer, Copy, Reduce, Reduction, Scan, Scope, Store
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower import tiles
from tile2cu.frontend.lower.copy import operands
from tile2cu.frontend.lower.operand import as_buffer, as_flag, as_region, as_static_shape
from tile2cu.frontend.operators import static_int
from tile2cu.frontend.subscript import extents_text
from tile2cu.frontend.values import View, describe


def _reduction(
    kind: Reduction,
    cx: Context,
    /,
    buffer: object,
    out: object = None,
    dim: object = -1,
    clear: object = True,
    batch: object = 1,
    nan_propagate: object = False,
    axis: object = None,
) -> object:
    """`T.reduce_max(buffer, out, dim, clear)`: `clear=False` lets out take part; without out, it gives a tile."""
    name = f"T.reduce_{kind.value}"
    cx.recorder.require_tile_operation(name)
    dim = dim if axis is None else axis
    if out is None:
        return tiles.reduced(cx, kind, buffer, dim)
    keeps_old = not as_flag(clear, f"`clear` of {name}")
    src = _tile_of(cx, buffer, f"the source of {name}", read=True)
    dst = _tile_of(cx, out, f"the result of {name}", read=keeps_old)
    along = _dimension(name, src, dim)
    keeps_nan = _keeps_nan(kind, src, as_flag(nan_propagate, f"`nan_propagate` of {name}"))
    _require_tiles(name, src, dst)
    _require_shape(name, src, dst, along)
    stmt = Reduce(
        kind=kind, src=src, dst=dst, dim=along, clear=not keeps_old, keeps_nan=keeps_nan, **cx.recorder.take().fields
    )
    if Scope.LOCAL in (src.scope, dst.scope):
        _reduce_in_each_thread(cx, name, stmt)
    else:
        cx.recorder.emit(stmt)
    _put_back(cx, dst, out)
    return None


def _tile_of(cx: Context, value: object, what: str, *, read: bool) -> Buffer:
    """A tile; for a part of one, a fragment of its own, with the part's elements where they are `read`.

    For a variable, an array of one element.
    """
    if isinstance(value, Var) and value.role is Role.MUTABLE:
        at = cx.recorder.peek()
        alone = cx.recorder.allocate_at(at, f"{value.name}_local", (int_const(1),), value.dtype, Scope.LOCAL)
        if read:
            cx.recorder.emit(Store(buffer=alone, indices=(int_const(0),), value=value, span=at.span))
        return alone
    if not isinstance(value, View) or as_region(cx, value, what).whole:
        return as_buffer(cx, value, what)
    region = as_region(cx, value, what)
    if region.buffer.scope is Scope.GLOBAL:
        raise Fault("T2C-F023", f"{what} is {describe(region.buffer)}", help="copy it into a tile first")
    shape = as_static_shape(cx, region.extents, f"the extents of {what}")
    at = cx.recorder.peek()
    part = cx.recorder.allocate_at(at, f"{region.buffer.name}_part", shape, region.buffer.dtype, Scope.FRAGMENT)
    if read:
        source, target = operands(cx, "T.copy", value, part)
        cx.recorder.emit(
            Copy(src=source, dst=target, span=at.span, reason="a part of a tile is worked on in registers")
        )
    return part


def _put_back(cx: Context, part: Buffer, whole: object) -> None:
    """The elements of what `_tile_of` made of a part, or of a variable, back where they belong."""
    if isinstance(whole, Var):
        value = Load(part.dtype, part, (int_const(0),))
        cx.recorder.emit(Assign(var=whole, value=value, span=cx.recorder.peek().span))
    if isinstance(whole, View) and part is not whole.buffer:
        source, target = operands(cx, "T.copy", part, whole)
        reason = "the part of the tile that was worked on in registers"
        cx.recorder.emit(Copy(src=source, dst=target, span=cx.recorder.peek().span, reason=reason))


def _reduce_in_each_thread(cx: Context, name: str, op: Reduce) -> None:
    """The reduction of an array that each thread has for itself: plain loops."""
    if op.src.scope is not op.dst.scope:
        raise Fault(
            "T2C-F023",
            f"{name} from {describe(op.src)} to {describe(op.dst)}: one of them is private to each thread",
            help="use T.alloc_fragment, or T.alloc_local, for both",
        )
    indices = cx.recorder.indices(op.src.shape, Role.LOOP)
    kept = [each for dim, each in enumerate(indices) if dim != op.dim]
    place = (*indices[: op.dim], int_const(0), *indices[op.dim + 1 :]) if op.dst.rank == op.src.rank else tuple(kept)
    place = place or (int_const(0),)
    if op.clear:
        number = Const(op.dst.dtype, op.kind.identity(op.dst.dtype), weak=False)
        first = Store(buffer=op.dst, indices=place, value=number, span=op.span)
        extents = [extent for dim, extent in enumerate(op.src.shape) if dim != op.dim]
        cx.recorder.emit(tiles.in_each_thread(tuple(kept), extents, (first,), op.span) if kept else first)
    value: Expr = Load(op.src.dtype, op.src, indices)
    if op.src.dtype != op.dst.dtype:
        value = Call(op.dst.dtype, "cast", (value,))
    if op.kind in (Reduction.ABSMAX, Reduction.ABSSUM) and op.dst.dtype.kind != "uint":
        value = Call(op.dst.dtype, "abs", (value,))
    old = Load(op.dst.dtype, op.dst, place)
    function = op.kind.value.removeprefix("abs")
    value = binary(op.kind.operator, old, value) if op.kind.operator else Call(old.dtype, function, (old, value))
    stored = Store(buffer=op.dst, indices=place, value=cx.expression(value), span=op.span)
    cx.recorder.emit(replace(tiles.in_each_thread(indices, op.src.shape, (stored,), op.span), comments=op.comments))


def _keeps_nan(kind: Reduction, src: Buffer, asked: bool) -> bool:
    """Whether a NaN wins: a sum has it anyway, and integers have none."""
    if asked and kind not in _EXTREMES:
        extremes = " and ".join(f"T.reduce_{each.value}" for each in _EXTREMES)
        raise Fault("T2C-F023", f"`nan_propagate` is for {extremes}", help="leave it out")
    return asked and src.dtype.is_float


_EXTREMES = (Reduction.MAX, Reduction.MIN, Reduction.ABSMAX)


def _dimension(name: str, src: Buffer, dim: object) -> int:
    axis = int(static_int(dim, f"`dim` of {name}"))
    if not -src.rank <= axis < src.rank:
        raise Fault("T2C-F022", f"{name}: `{src.name}` {extents_text(src.shape)} has no dimension {axis}")
    return axis % src.rank


def _require_tiles(name: str, src: Buffer, dst: Buffer) -> None:
    for buffer in (src, dst):
        if buffer.scope is Scope.GLOBAL:
            raise Fault("T2C-F023", f"{name} takes tiles, not {describe(buffer)}", help="copy it into a tile first")


def _require_shape(name: str, src: Buffer, dst: Buffer, axis: int) -> None:
    """The result has the source's shape without the dimension, or with extent 1 there."""
    found = [static_value(extent) for extent in dst.shape]
    extents = [static_value(extent) for extent in src.shape]
    without = extents[:axis] + extents[axis + 1 :]
    kept = [*extents[:axis], 1, *extents[axis + 1 :]]
    if found not in (without, kept):
        wanted = without if without else kept
        shape = "(" + ", ".join(map(str, wanted)) + ("," if len(wanted) == 1 else "") + ")"
        raise Fault(
            "T2C-F022",
            f"{name} of `{src.name}` {extents_text(src.shape)} along dimension {axis} gives {shape}, "
            f"but `{dst.name}` is {extents_text(dst.shape)}",
        )


def _scan(
    name: str,
    kind: Reduction,
    cx: Context,
    /,
    src: object,
    dst: object = None,
    dim: object = 0,
    reverse: object = False,
    *,
    annotations: object = None,
) -> None:
    """`T.cumsum(src, dst, dim, reverse)`: the inclusive running sum; in place where `dst` is left out.

    `annotations` are hints and dropped.
    """
    cx.recorder.require_tile_operation(name)
    source = _tile_of(cx, src, f"the source of {name}", read=True)
    target = source if dst is None else _tile_of(cx, dst, f"the result of {name}", read=False)
    axis = _dimension(name, source, dim)
    _require_tiles(name, source, target)
    if [static_value(extent) for extent in source.shape] != [static_value(extent) for extent in target.shape]:
        raise Fault(
            "T2C-F022",
            f"{name} of `{source.name}` {extents_text(source.shape)} does not fit "
            f"`{target.name}` {extents_text(target.shape)}",
        )
    backwards = as_flag(reverse, f"`reverse` of {name}")
    cx.recorder.emit(Scan(kind=kind, src=source, dst=target, dim=axis, reverse=backwards, **cx.recorder.take().fields))
    _put_back(cx, target, src if dst is None else dst)


FUNCTIONS: dict[str, Callable[..., object]] = {
    **{f"reduce_{kind.value}": partial(_reduction, kind) for kind in Reduction},
    "cumsum": partial(_scan, "T.cumsum", Reduction.SUM),
    "cummax": partial(_scan, "T.cummax", Reduction.MAX),
}
