"""Reductions of tiles in registers: in each thread, across lanes, and across warps."""

from collections.abc import Iterator

from tile2cu.core.layout import Blocked, Replicated, slice_of
from tile2cu.core.mfma_layout import MfmaTile
from tile2cu.core.program import Reduction, Scope
from tile2cu.plan import ops
from tile2cu.styles.ck import vocabulary as words
from tile2cu.styles.ck.expressions import CkPrinter
from tile2cu.styles.ck.fragments import Fragments
from tile2cu.styles.ck.support import unsupported

_COMBINED = {
    Reduction.SUM: "ReduceOp::Add",
    Reduction.MAX: words.MAXIMUM,
    Reduction.MIN: words.MINIMUM,
    Reduction.ABSSUM: words.ABS_SUM,
    Reduction.ABSMAX: words.ABS_MAXIMUM,
}
_NEUTRAL = {Reduction.MAX: words.LEAST, Reduction.MIN: words.GREATEST}
_IDEMPOTENT = (Reduction.MAX, Reduction.MIN, Reduction.ABSMAX)


def reduction(op: ops.Reduce, printer: CkPrinter, fragments: Fragments) -> str:
    """A reduction of a fragment's rows or columns. Errors: T2C-E034."""
    span, src, dst = op.source.span, op.src, op.dst
    if src.scope is not Scope.FRAGMENT or dst.scope is not Scope.FRAGMENT or op.kind not in _COMBINED:
        raise unsupported("a reduction other than of a fragment by sum, maximum or minimum", span)
    if src.dtype != dst.dtype or src.dtype.name not in ("float32", "int32") or op.keeps_nan:
        raise unsupported("a reduction other than in 32 bits, or one that keeps NaN", span)
    if src.rank == 1 and isinstance(fragments.layout(dst), Replicated):
        return "\n".join(_in_each_thread(op, printer, fragments))
    if src.rank != 2:
        raise unsupported("a reduction of other than two dimensions, or of one that every thread holds", span)
    layout, result = fragments.layout(src), fragments.layout(dst)
    kept = (1 - op.dim,)
    if not isinstance(layout, MfmaTile | Blocked) or isinstance(result, Replicated) or slice_of(layout, kept) != result:
        raise unsupported("a reduction to values that are no rows or columns of the fragment", span)
    encoding = fragments.of(layout, span).encoding
    if encoding.rs and op.kind not in _IDEMPOTENT:
        raise unsupported("a sum of values that several threads hold", span)
    return "\n".join(_lines(op, printer, encoding.shape != src.static_shape))


def _in_each_thread(op: ops.Reduce, printer: CkPrinter, fragments: Fragments) -> Iterator[str]:
    """Every thread holds all elements, and combines them one by one. Errors: T2C-E034 where it holds a part."""
    src, dst, layout = printer.names(op.src.name), f"{printer.names(op.dst.name)}[0]", fragments.layout(op.src)
    if not op.accumulates:
        yield f"{dst} = {_NEUTRAL.get(op.kind, '{}(0)').format(op.dst.dtype.cpp)};"
    e = printer.names.fresh("e")
    if isinstance(layout, Replicated):
        combined = f"{_COMBINED[op.kind]}{{}}({dst}, {src}[{e}])"
        yield f"for (int {e} = 0; {e} < {printer.index(op.src.shape[0])}; ++{e}) {dst} = {combined};"
        return
    encoding = fragments.of(layout, op.source.span).encoding
    if encoding.shape != op.src.static_shape or encoding.registers != op.src.static_shape[0]:
        raise unsupported("a reduction of one dimension whose elements several threads hold", op.source.span)
    yield f"sweep_tile({src}, [&](auto {e}) {{ {dst} = {_COMBINED[op.kind]}{{}}({dst}, {src}({e})); }});"


def _lines(op: ops.Reduce, printer: CkPrinter, overhangs: bool) -> Iterator[str]:
    src, dst = printer.names(op.src.name), printer.names(op.dst.name)
    element, function = op.dst.dtype.cpp, f"{_COMBINED[op.kind]}{{}}"
    neutral = _NEUTRAL.get(op.kind, "{}(0)").format(element)
    if overhangs:
        extents = zip(op.src.static_shape, op.src.shape, strict=True)
        (extent,) = (printer.index(shape) for dim, (_, shape) in enumerate(extents) if dim == op.dim)
        yield "// places beyond the tile hold the neutral element"
        yield f"set_tile_if({src}, {neutral}, [](auto at) {{ return at[number<{op.dim}>{{}}] >= {extent}; }});"
    into = dst
    if op.accumulates and op.kind not in _IDEMPOTENT:
        into = printer.names.fresh(f"{dst}_part")
        yield f"auto {into} = {dst};"
    if into != dst or not op.accumulates:
        yield f"set_tile({into}, {neutral});" if op.kind in _NEUTRAL else f"clear_tile({into});"
    rows = "block_tile_reduce" if op.dim == 1 else words.REDUCE_COLUMNS
    dims = ", sequence<1>{}" if op.dim == 1 else ""
    yield f"{rows}({into}, {src}{dims}, {function});"
    if not op.thread_local:
        yield f"block_tile_reduce_xor_sync({into}, {function});"
    if op.parts > 1:
        workspace = printer.names(f"{op.dst.name}_workspace")
        yield f"{words.REDUCE_WARPS}({into}, {workspace}, {function});"
    if into != dst:
        yield f"tile_elementwise_inout([](auto& {dst}, auto part) {{ {dst} += part; }}, {dst}, {into});"
