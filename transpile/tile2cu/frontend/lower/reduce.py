"""T.reduce_*: reductions of a tile along one dimension."""

from collections.abc import Callable

from tile2cu.core.expr import static_value
from tile2cu.core.program import Buffer, Reduce, Reduction, Scan, Scope
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower import tiles
from tile2cu.frontend.lower.operand import as_buffer, as_flag
from tile2cu.frontend.operators import static_int
from tile2cu.frontend.subscript import extents_text
from tile2cu.frontend.values import describe


def _reduction(kind: Reduction) -> Callable[..., object]:
    name = f"T.reduce_{kind.value}"

    def run(
        cx: Context,
        buffer: object,
        out: object = None,
        dim: object = -1,
        clear: object = True,
        batch: object = 1,
        nan_propagate: object = False,
        axis: object = None,
    ) -> object:
        """`T.reduce_max(buffer, out, dim, clear)`: `clear=False` lets out take part; without out, it gives a tile."""
        cx.recorder.require_kernel(name)
        cx.recorder.require_tile_operation(name)
        dim = dim if axis is None else axis
        if out is None:
            return tiles.reduced(cx, kind, buffer, dim)
        src, dst = as_buffer(cx, buffer, f"the source of {name}"), as_buffer(cx, out, f"the result of {name}")
        along = _dimension(name, src, dim)
        keeps_nan = _keeps_nan(kind, src, as_flag(nan_propagate, f"`nan_propagate` of {name}"))
        _require_tiles(name, src, dst)
        _require_shape(name, src, dst, along)
        at = cx.recorder.take()
        cx.recorder.emit(
            Reduce(
                kind=kind,
                src=src,
                dst=dst,
                dim=along,
                clear=as_flag(clear, f"`clear` of {name}"),
                keeps_nan=keeps_nan,
                **at.fields,
            )
        )
        return None

    return run


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


def _scan(name: str, kind: Reduction) -> Callable[..., object]:
    def run(cx: Context, src: object, dst: object = None, dim: object = 0, reverse: object = False) -> object:
        """`T.cumsum(src, dst, dim, reverse)`: the inclusive running sum; in place where `dst` is left out."""
        cx.recorder.require_kernel(name)
        cx.recorder.require_tile_operation(name)
        source = as_buffer(cx, src, f"the source of {name}")
        target = source if dst is None else as_buffer(cx, dst, f"the result of {name}")
        axis = _dimension(name, source, dim)
        _require_tiles(name, source, target)
        if [static_value(extent) for extent in source.shape] != [static_value(extent) for extent in target.shape]:
            raise Fault(
                "T2C-F022",
                f"{name} of `{source.name}` {extents_text(source.shape)} does not fit "
                f"`{target.name}` {extents_text(target.shape)}",
            )
        backwards = as_flag(reverse, f"`reverse` of {name}")
        at = cx.recorder.take()
        cx.recorder.emit(
            Scan(
                kind=kind,
                src=source,
                dst=target,
                dim=axis,
                reverse=backwards,
                **at.fields,
            )
        )
        return None

    return run


FUNCTIONS: dict[str, Callable[..., object]] = {f"reduce_{kind.value}": _reduction(kind) for kind in Reduction} | {
    "cumsum": _scan("T.cumsum", Reduction.SUM),
    "cummax": _scan("T.cummax", Reduction.MAX),
}
