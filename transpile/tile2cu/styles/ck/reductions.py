"""Reductions of tiles in registers: in each thread, across lanes, and across warps."""

from collections.abc import Iterator

from tile2cu.core.layout import Blocked, Replicated, slice_of
from tile2cu.core.mfma_layout import MfmaTile
from tile2cu.core.program import Reduction, Scope
from tile2cu.core.shared_memory import workspace_name
from tile2cu.plan import ops
from tile2cu.styles.ck import vocabulary as words
from tile2cu.styles.ck.expressions import CkPrinter
from tile2cu.styles.ck.fragments import Fragments, Temporary, guarded, tile_of
from tile2cu.styles.ck.support import unsupported
from tile2cu.styles.ck.types import in_ck

_COMBINED = {
    Reduction.SUM: "ReduceOp::Add",
    Reduction.MAX: words.MAXIMUM,
    Reduction.MIN: words.MINIMUM,
    Reduction.ABSSUM: words.ABS_SUM,
    Reduction.ABSMAX: words.ABS_MAXIMUM,
}
_NEUTRAL = {Reduction.MAX: words.LEAST, Reduction.MIN: words.GREATEST}
_SUMMED = ("float32", "int32", "float16", "bfloat16")
_ORDERED = ("float32", "int32", "float16")
_IDEMPOTENT = (Reduction.MAX, Reduction.MIN, Reduction.ABSMAX)


def reduction(op: ops.Reduce, printer: CkPrinter, fragments: Fragments) -> str:
    """A reduction of one dimension of a fragment. Errors: T2C-E034."""
    span, src, dst = op.source.span, op.src, op.dst
    if src.scope is not Scope.FRAGMENT or dst.scope is not Scope.FRAGMENT or op.kind not in _COMBINED:
        raise unsupported("a reduction other than of a fragment by sum, maximum or minimum", span)
    _check_types(op)
    layout, result = fragments.layout(src), fragments.layout(dst)
    if src.rank == 1 and isinstance(result, Replicated):
        return "\n".join(_to_one_value(op, printer, fragments))
    if isinstance(layout, Replicated) or isinstance(result, Replicated):
        raise unsupported("a reduction of several dimensions that every thread holds", span)
    kept = tuple(dim for dim in range(src.rank) if dim != op.dim)
    if not isinstance(layout, MfmaTile | Blocked) or slice_of(layout, kept) != result:
        raise unsupported("a reduction to values whose layout is no slice of the fragment's", span)
    encoding = fragments.of(layout, span).encoding
    if encoding.rs and (op.kind not in _IDEMPOTENT or op.parts > 1):
        raise unsupported("a sum of values that several threads hold, or their exchange between waves", span)
    across_lanes = bool(encoding.rs) or layout.along(op.dim).lanes > 1
    overhangs = encoding.shape != src.static_shape
    apart = op.accumulates and (across_lanes or op.parts > 1) and not op.thread_local
    if apart:
        fragments.hold(Temporary.PARTS, result.registers * dst.dtype.bytes)
    return "\n".join(_lines(op, printer, fragments, overhangs=overhangs, across_lanes=across_lanes, apart=apart))


def _check_types(op: ops.Reduce) -> None:
    """Errors: T2C-E034 for types that `warp_shuffle` or a function does not take, and for what keeps NaN."""
    names = _SUMMED if op.kind is Reduction.SUM else _ORDERED
    if op.src.dtype != op.dst.dtype or op.keeps_nan or op.src.dtype.name not in names:
        what = f"a reduction of {op.src.dtype} to {op.dst.dtype}, or one that keeps NaN"
        raise unsupported(what, op.source.span)


def _to_one_value(op: ops.Reduce, printer: CkPrinter, fragments: Fragments) -> Iterator[str]:
    """A fragment of one dimension to a value that every thread holds. Errors: T2C-E034."""
    src, dst, layout = printer.names(op.src.name), f"{printer.names(op.dst.name)}[0]", fragments.layout(op.src)
    element, function = op.dst.dtype.cpp, f"{_COMBINED[op.kind]}{{}}"
    neutral = _NEUTRAL.get(op.kind, "{}(0)").format(element)
    if isinstance(layout, Replicated):
        if not op.accumulates:
            yield f"{dst} = {neutral};"
        e = printer.names.fresh("e")
        combined = f"{function}({dst}, {src}[{e}])"
        yield f"for (int {e} = 0; {e} < {printer.index(op.src.shape[0])}; ++{e}) {dst} = {combined};"
        return
    encoding = fragments.of(layout, op.source.span).encoding
    if encoding.rs and op.parts > 1:
        raise unsupported("a reduction across waves of values that several threads hold", op.source.span)
    if encoding.shape != op.src.static_shape:
        yield from _idle_places(op, printer, neutral)
    parts = printer.names.fresh(f"parts_of_{printer.names(op.dst.name)}")
    fragments.hold(Temporary.PARTS, op.dst.dtype.bytes)
    yield f"auto {parts} = {tile_of(element, f'{words.ONE_VALUE}<threads>')};"
    yield f"set_tile({parts}, {neutral});" if op.kind in _NEUTRAL else f"clear_tile({parts});"
    added = f"{words.REDUCE_DIMENSION}<0>({parts}, {src}, {function});"
    yield guarded(added, encoding, in_each_wave=True)  # waves that hold copies have the whole vector each
    yield from _across_threads(op, printer, parts, function, across_lanes=True)
    value = f"{parts}.get_thread_buffer()[0]"
    yield f"{dst} = {f'{function}({dst}, {value})' if op.accumulates else value};"


def _idle_places(op: ops.Reduce, printer: CkPrinter, neutral: str) -> Iterator[str]:
    src, extent = printer.names(op.src.name), printer.index(op.src.shape[op.dim])
    yield "// places beyond the tile hold the neutral element"
    if op.src.rank == 2:
        yield f"set_tile_if({src}, {neutral}, [](auto at) {{ return at[number<{op.dim}>{{}}] >= {extent}; }});"
    else:
        yield f"{words.SET_BEYOND}<{op.dim}>({src}, {extent}, {neutral});"


def _across_threads(
    op: ops.Reduce, printer: CkPrinter, into: str, function: str, *, across_lanes: bool
) -> Iterator[str]:
    """What threads hold parts of, combined across lanes, then across waves through LDS."""
    if across_lanes and not op.thread_local:
        yield f"block_tile_reduce_xor_sync({into}, {function});"
    if op.parts > 1:
        workspace = printer.names(workspace_name(op.dst.name))
        ordered = f"<{words.ORDERED}>" * op.ordered
        yield f"{words.REDUCE_WARPS}{ordered}({into}, {workspace}, {function});"


def _lines(
    op: ops.Reduce, printer: CkPrinter, fragments: Fragments, *, overhangs: bool, across_lanes: bool, apart: bool
) -> Iterator[str]:
    """`apart`: the values that there are join the others' total after it is known."""
    src, dst = printer.names(op.src.name), printer.names(op.dst.name)
    element, function = in_ck(op.dst.dtype.cpp), f"{_COMBINED[op.kind]}{{}}"
    neutral = _NEUTRAL.get(op.kind, "{}(0)").format(element)
    if overhangs:
        yield from _idle_places(op, printer, neutral)
    into = dst
    if apart:
        into = printer.names.fresh(f"{dst}_part")
        if op.kind in _NEUTRAL:  # which may be combined with itself: docs/lab/amd.md has the counts
            yield f"// apart from the old {dst}: a chain that begins with that needs an instruction more per element"
        yield f"auto {into} = {dst};"
    if into != dst or not op.accumulates:
        yield f"set_tile({into}, {neutral});" if op.kind in _NEUTRAL else f"clear_tile({into});"
    if (op.src.rank, op.dim) == (2, 1):
        yield f"block_tile_reduce({into}, {src}, sequence<1>{{}}, {function});"
    else:
        yield f"{words.REDUCE_DIMENSION}<{op.dim}>({into}, {src}, {function});"
    yield from _across_threads(op, printer, into, function, across_lanes=across_lanes)
    if into != dst:
        total, part = fragments.inner_name("total"), fragments.inner_name("part")
        both = f"{total} = {function}({total}, {part});"
        yield f"tile_elementwise_inout([](auto& {total}, auto {part}) {{ {both} }}, {dst}, {into});"
