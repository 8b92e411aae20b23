"""T.copy, T.fill and T.clear."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from tile2cu.core.expr import Expr, Load, Role, Var, static_value
from tile2cu.core.program import Assign, Buffer, Copy, Fill, Region, Scope, Store
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower import open_loop, tiles
from tile2cu.frontend.lower.elementwise import cast
from tile2cu.frontend.lower.operand import as_number, as_region, place, point, same_extent
from tile2cu.frontend.lower.spread import is_spread, spread
from tile2cu.frontend.subscript import extents_text
from tile2cu.frontend.values import TileValue, View, as_expr


def copy(
    cx: Context,
    src: object,
    dst: object,
    *,
    coalesced_width: object = None,
    disable_tma: object = False,
    eviction_policy: object = None,
    prefer_instruction: object = None,
    annotations: object = None,
    loop_layout: object = None,
) -> None:
    """`T.copy(src, dst)`: the same box of elements, converted to dst's type.

    The options are hints and dropped, but for `disable_tma`, and `eviction_policy` where registers are loaded from a
    tensor.
    """
    cx.recorder.require_kernel("T.copy")
    if isinstance(dst, Load | Var) and isinstance(number := as_expr(src), Load | Var):
        _copy_number(cx, number, dst)
        return
    cx.recorder.require_tile_operation("T.copy")
    if isinstance(src, TileValue) and isinstance(dst, Buffer) and tiles.is_tile(dst) and dst.rank == len(src.shape):
        tiles.store(cx, dst, src, "")
        return
    if isinstance(src, TileValue):
        src = tiles.written(cx, src, "value", dst.dtype if isinstance(dst, Buffer) else None)
    source, target = operands(cx, "T.copy", src, dst)
    if is_spread(cx, source, target):
        spread(cx, source, target, None)
        return
    at = cx.recorder.take()
    evict = str(eviction_policy) if eviction_policy in ("evict_first", "evict_last") else ""
    laid_out, by_threads = loop_layout is not None, disable_tma is True
    cx.recorder.emit(Copy(src=source, dst=target, evict=evict, laid_out=laid_out, by_threads=by_threads, **at.fields))


def operands(cx: Context, name: str, src: object, dst: object) -> tuple[Region, Region]:
    """The two equal boxes of T.copy and of what follows its rules."""
    source, target = _sides(cx, name, src, dst)
    source, target = _drop_ones(source), _drop_ones(target)
    _require_equal(name, source, target)
    return _with_numbers_of(source, target), _with_numbers_of(target, source)


def _with_numbers_of(region: Region, other: Region) -> Region:
    """The region with the other side's extents where only those are numbers: a copy runs over the tile's elements."""
    ranges = list(region.ranges)
    for dim, extent in zip(region.kept, other.extents, strict=True):
        if static_value(ranges[dim].extent) is None and static_value(extent) is not None:
            ranges[dim] = replace(ranges[dim], extent=extent)
    return region if tuple(ranges) == region.ranges else replace(region, ranges=tuple(ranges), whole=False)


def _copy_number(cx: Context, src: Load | Var, dst: Load | Var) -> None:
    """Between elements and variables: each thread's own load, store or assignment."""
    value = cast(cx, src, dst.dtype)
    assert isinstance(value, Expr)
    if isinstance(dst, Load):
        _store(cx, dst, value)
    elif dst.role is Role.MUTABLE:
        cx.recorder.emit(Assign(var=dst, value=value, op="", **cx.recorder.take().fields))
    else:
        raise Fault("T2C-F023", f"T.copy cannot change `{dst.name}`", help="declare it with T.alloc_var(dtype)")


def _store(cx: Context, dst: Load, value: Expr) -> None:
    assert isinstance(dst.buffer, Buffer)
    cx.recorder.emit(Store(buffer=dst.buffer, indices=dst.indices, value=value, **cx.recorder.take().fields))


def _sides(cx: Context, name: str, src: object, dst: object) -> tuple[Region, Region]:
    """Both operands as regions; a point takes the extents of the other side."""
    if isinstance(src, Load):
        target = as_region(cx, dst, f"the destination of {name}")
        return _at_point(cx, name, src, target), target
    source = as_region(cx, src, f"the source of {name}")
    if isinstance(dst, Load):
        return source, _at_point(cx, name, dst, source)
    return source, as_region(cx, dst, f"the destination of {name}")


def _at_point(cx: Context, name: str, load: Load, other: Region) -> Region:
    """The region that starts at an element and is as large as the other side."""
    buffer = load.buffer
    assert isinstance(buffer, Buffer)
    extents = other.extents
    while len(extents) > buffer.rank and static_value(extents[0]) == 1:
        extents = extents[1:]
    if len(extents) > buffer.rank:
        raise Fault(
            "T2C-F020",
            f"{name}: `{other.buffer.name}` of {len(extents)} dimensions {extents_text(extents)} does not fit "
            f"`{buffer.name}` of {buffer.rank}",
        )
    return point(load, extents, place(cx))


def _drop_ones(region: Region) -> Region:
    """The region without its kept dimensions of extent 1; one is left if all are 1."""
    kept = tuple(dim for dim in region.kept if static_value(region.ranges[dim].extent) != 1)
    if not kept:
        kept = (region.kept or tuple(range(region.buffer.rank)))[-1:]
    return Region(buffer=region.buffer, ranges=region.ranges, kept=kept, whole=region.whole, span=region.span)


def _require_equal(name: str, src: Region, dst: Region) -> None:
    """Ranks must agree, and extents where both are static; an open one takes the other side's number."""
    agree = len(src.kept) == len(dst.kept)
    for a, b in zip(src.extents, dst.extents, strict=False):
        both_static = static_value(a) is not None and static_value(b) is not None
        agree = agree and (same_extent(a, b) or not both_static)
    if not agree:
        raise Fault(
            "T2C-F020",
            f"{name} from `{src.buffer.name}` {extents_text(src.extents)} "
            f"to `{dst.buffer.name}` {extents_text(dst.extents)}: the shapes do not agree",
            help=_help(src, dst),
        )


def _help(src: Region, dst: Region) -> str:
    if len(src.kept) != len(dst.kept):
        return "an index leaves its dimension out, as in `A[i, a:b]`; dimensions of extent 1 are left out too"
    side = next((region for region in (src, dst) if region.buffer.scope is Scope.GLOBAL), None)
    if side is None:
        return "write a broadcast as a T.Parallel loop"
    zeros = ", ".join(["0"] * side.buffer.rank)
    return f"name the corner only, `{side.buffer.name}[{zeros}]`: the box is then as large as the other side"


def fill(cx: Context, dst: object, value: object) -> None:
    """`T.fill(buffer, value)`."""
    _fill(cx, "T.fill", dst, value, is_clear=False)


def clear(cx: Context, dst: object) -> None:
    """`T.clear(buffer)`: fills with 0."""
    _fill(cx, "T.clear", dst, 0, is_clear=True)


def _fill(cx: Context, name: str, dst: object, value: object, *, is_clear: bool) -> None:
    cx.recorder.require_tile_operation(name)
    written = as_number(value, f"the value of {name}")
    if isinstance(dst, Var) and dst.role is Role.MUTABLE:
        at = cx.recorder.take()
        cx.recorder.emit(Assign(var=dst, value=written, **at.fields))
        return
    if isinstance(dst, Load) and not _is_of_block(dst):
        _store(cx, dst, written)
        return
    region = _element(cx, dst) if isinstance(dst, Load) else as_region(cx, dst, f"the destination of {name}")
    open_loop.ask(cx, region.extents, "an extent of what is filled")
    if open_loop.is_open(region.extents):
        _fill_open(cx, region, written)
        return
    at = cx.recorder.take()
    cx.recorder.emit(Fill(dst=region, value=written, is_clear=is_clear, **at.fields))


def _fill_open(cx: Context, region: Region, value: Expr) -> None:
    """A part whose extents are known only at run time, element by element."""

    def body(indices: Sequence[Var]) -> None:
        cx.recorder.emit(Store(buffer=region.buffer, indices=region.at(indices), value=value, span=region.span))

    names = [var.name for var in cx.recorder.indices(region.extents)]
    open_loop.over(cx, region.extents, names, cx.recorder.take(), body)


def _is_of_block(dst: Load) -> bool:
    """Whether it is an element of shared memory: one thread fills it, not each."""
    return isinstance(dst.buffer, Buffer) and dst.buffer.scope is Scope.SHARED


def _element(cx: Context, at: Load) -> Region:
    """One element as a part of its tile."""
    assert isinstance(at.buffer, Buffer)
    region = as_region(cx, View(at.buffer, at.indices), "the destination of T.fill")
    return replace(region, kept=(at.buffer.rank - 1,))


FUNCTIONS: dict[str, Callable[..., object]] = {"copy": copy, "fill": fill, "clear": clear}
