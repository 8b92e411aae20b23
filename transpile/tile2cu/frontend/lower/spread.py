"""Tile operations as loops over elements: on tensors whose elements the user has placed, and from tensor to tensor."""

from collections.abc import Callable

from tile2cu.core.expr import Call, Const, Expr, Load, Var, binary, joined, static_value
from tile2cu.core.program import Atomic, If, Parallel, Reduction, Region, Scope, Stmt, Store
from tile2cu.frontend.context import Context
from tile2cu.frontend.lower import open_loop
from tile2cu.frontend.placement import element_or_else, physical
from tile2cu.frontend.record import Place
from tile2cu.frontend.values import Padded, padded


def is_placed(cx: Context, *regions: Region) -> bool:
    """Whether one of the tensors has a layout of its own."""
    return any(region.buffer.name in cx.recorder.placements for region in regions)


def is_spread(cx: Context, source: Region, target: Region) -> bool:
    """Whether a copy is a loop over elements: of tensors alone, placed ones, and those that are not 0 outside.

    So are copies of parts whose extents are known only at run time.
    """
    tensors = source.buffer.scope is target.buffer.scope is Scope.GLOBAL
    otherwise = source.buffer.name in cx.recorder.otherwise
    return tensors or otherwise or is_placed(cx, source, target) or is_open(source, target)


def is_open(source: Region, target: Region) -> bool:
    """Whether the sizes of the boxes are known only at run time: `K[a : a + n]` and `K_shared[:n]`."""
    pairs = zip(source.extents, target.extents, strict=True)
    return any(static_value(a) is None and static_value(b) is None for a, b in pairs)


def spread(cx: Context, source: Region, target: Region, kind: Reduction | None) -> None:
    """`target = source`, or target combined with source, as a T.Parallel loop over the elements."""
    tile = next((side for side in (target, source) if side.buffer.scope is not Scope.GLOBAL), None)
    if tile is not None and is_open(source, target):
        _spread_over(cx, tile, source, target, kind)
        return
    pairs = zip(source.extents, target.extents, strict=True)
    extents = tuple(a if static_value(b) is None else b for a, b in pairs)
    open_loop.ask(cx, extents, "an extent of a copy element by element")
    at = cx.recorder.take()
    indices = cx.recorder.indices(extents)
    if open_loop.is_open(extents):

        def element(own: tuple[Var, ...]) -> None:
            cx.recorder.emit(_element(cx, source, target, kind, own, at))

        open_loop.over(cx, extents, [index.name for index in indices], at, element)
        return
    body = _element(cx, source, target, kind, indices, at)
    cx.recorder.emit(Parallel(vars=indices, extents=extents, body=(body,), **at.fields))


def _spread_over(cx: Context, tile: Region, source: Region, target: Region, kind: Reduction | None) -> None:
    """The loop over all of a tile along its open extents, with a condition: a part has at most the tile's extents."""
    for side in (source, target):
        open_loop.ask(cx, side.extents, "an extent of a copy")
    at = cx.recorder.take()
    extents = tuple(
        tile.buffer.shape[dim] if static_value(extent) is None else extent
        for dim, extent in zip(tile.kept, tile.extents, strict=True)
    )
    indices = cx.recorder.indices(extents)
    ends = dict.fromkeys(
        (index, extent)
        for index, *both in zip(indices, source.extents, target.extents, strict=True)
        for extent in both
        if static_value(extent) is None
    )
    condition = joined("and", (binary("<", index, end) for index, end in ends))
    assert condition is not None
    body = _element(cx, source, target, kind, indices, at)
    guarded = If(condition=cx.expression(condition), then=(body,), span=at.span)
    cx.recorder.emit(Parallel(vars=indices, extents=extents, body=(guarded,), **at.fields))


def _element(
    cx: Context, source: Region, target: Region, kind: Reduction | None, indices: tuple[Var, ...], at: Place
) -> Stmt:
    """What happens to one element."""
    read, written = source.at(indices), target.at(indices)
    value: Expr = Load(source.buffer.dtype, source.buffer, _physical(cx, source, read))
    if source.buffer.name in cx.recorder.otherwise:
        found = element_or_else(cx, source.buffer, read)
        value = padded(found) if isinstance(found, Padded) else found
    outside = _bounds(source, read) if is_placed(cx, source) else None
    if outside is not None:
        value = Call(value.dtype, "if_then_else", (outside, value, Const(value.dtype, 0)))
    if value.dtype != target.buffer.dtype:
        value = Call(target.buffer.dtype, "cast", (value,))
    place = _physical(cx, target, written)
    make: Callable[..., Stmt] = Store if kind is None else Atomic
    options = {} if kind is None else {"kind": kind}
    body: Stmt = make(buffer=target.buffer, indices=place, value=cx.expression(value), span=at.span, **options)
    inside = _bounds(target, written) if is_placed(cx, target) else None
    return body if inside is None else If(condition=inside, then=(body,), span=at.span)


def _physical(cx: Context, region: Region, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    found = cx.recorder.placements.get(region.buffer.name)
    return indices if found is None else physical(cx, region.buffer, found, indices)


def _bounds(region: Region, indices: tuple[Expr, ...]) -> Expr | None:
    """The condition that an element is one of the tensor's; None where it always is."""
    sides = ((dim, region.ranges[dim], region.buffer.shape[dim]) for dim in region.kept)
    open_ = ((dim, extent) for dim, part, extent in sides if static_value(part.start) != 0 or part.extent != extent)
    return joined("and", (binary("<", indices[dim], extent) for dim, extent in open_))
