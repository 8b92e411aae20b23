"""The sizes that ck_tile's offsets of 32 bits allow."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import element_accesses, variables, with_values
from tile2cu.analysis.tile_starts import begins_near
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import LAYOUT
from tile2cu.core.expr import Expr, binary, int_const, static_value, substitute
from tile2cu.core.layout import FragmentLayout
from tile2cu.core.memo import kept
from tile2cu.core.program import AtomicTile, Buffer, Copy, Let, Loop, Parallel, Region, Scope
from tile2cu.core.record import Record
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import tensor_view, viewed_tensors
from tile2cu.styles.base.comments import listed
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.view import Limit
from tile2cu.styles.ck import vocabulary as words
from tile2cu.styles.ck.encodings import encoding_of
from tile2cu.styles.ck.tensors import steps_of
from tile2cu.styles.ck.types import in_ck


class _Reach(Record, frozen=True):
    """A dimension of a tensor: its extent, and that of the largest tile that may overhang it; None where none may."""

    extent: Expr
    tile: Expr | None

    def in_code(self, printer: Printer) -> str:
        parts = (self.extent, *([] if self.tile is None else [self.tile]))
        return f"{{{', '.join(map(printer.index, parts))}}}"

    def last(self, printer: Printer) -> str:
        """The last index that a tile may address."""
        beyond = int(static_value(self.tile) or 0) - 2 if self.tile is not None else -1
        extent = static_value(self.extent)
        if extent is not None:
            return str(int(extent) + beyond)
        text = printer.in_words(self.extent)
        return f"{text} {'+' if beyond >= 0 else '-'} {abs(beyond)}" if beyond else text


def size_limits(launches: tuple[Resolved, ...], printer: Printer) -> Iterator[Limit]:
    """Each tensor of a run-time size, with the tile that overhangs it, has less than 2 GiB."""
    checks: dict[str, None] = {}
    last: dict[str, None] = {}
    for resolved in launches:
        for tensor in viewed_tensors(resolved):
            if all(static_value(extent) is not None for extent in tensor.shape):
                continue
            found = _reach(tensor, resolved)
            given = ", ".join(each.in_code(printer) for each in found)
            checks[f"!{words.FITS}<{in_ck(tensor.dtype.cpp)}>({{{given}}})"] = None
            last[f"{printer.names(tensor.name)}[{', '.join(each.last(printer) for each in found)}]"] = None
    if checks:
        moved = any(map(_past_last_tiles, launches))
        what = "tiles by which a window may overhang it" if moved else "tile that may overhang it"
        yield Limit(
            conditions=tuple(checks),
            comment=f"ck_tile's offsets have 32 bits: {{extent, {what}}} of each dimension",
            stated=f"The last elements that a tile{', or a window past the last one,' * moved} may address, in bounds "
            f"or not, must end within the first 2 GiB of their tensors, empty ones excepted: {listed(list(last))}",
        )


def _reach(tensor: Buffer, resolved: Resolved) -> tuple[_Reach, ...]:
    """What a kernel may address of a tensor."""
    tiles: list[dict[int, Expr]] = [{} for _ in tensor.shape]  # by their extents
    body, past = resolved.launch.body, _past_last_tiles(resolved)
    moves: tuple[Copy | AtomicTile, ...] = (*statements(body, Copy), *statements(body, AtomicTile))
    for move in moves:
        for region, other in ((move.src, move.dst), (move.dst, move.src)):
            if region.buffer is tensor:
                for dim, tile in _of_region(region, other, resolved):
                    found = _with_first(tile, region.ranges[dim].start, tensor.shape[dim], resolved)
                    found = _with_moves(found, past.get(id(move), {}).get(dim, _Moves()))
                    tiles[dim][int(static_value(found) or 0)] = found
    for loop in statements(body, Parallel):
        sizes_of_loop = _rounded(resolved.facts[loop, LAYOUT], loop.extents)
        for dim, size, start in _of_loop(loop, sizes_of_loop, tensor):
            found = _with_first(int_const(size), start, tensor.shape[dim], resolved)
            tiles[dim][int(static_value(found) or 0)] = found
    checked = tensor_view(tensor, resolved).checked
    moved = {dim for move in moves if move.src.buffer is tensor for dim in past.get(id(move), {})}
    return tuple(
        _Reach(
            extent,
            sizes[max(sizes)] if sizes and _may_overhang(extent, max(sizes), checked[dim] or dim in moved) else None,
        )
        for dim, (extent, sizes) in enumerate(zip(tensor.shape, tiles, strict=True))
    )


class _Moves(Record, frozen=True):
    """By how many steps of so many elements a window is past the last tile when its loop ends."""

    count: int = 0
    step: int = 0


@kept
def _past_last_tiles(resolved: Resolved) -> dict[int, dict[int, _Moves]]:
    """The moves past the last tile, by dimension, of the copies with these ids: windows move in every iteration.

    A loop with one stage moves them once before its iterations, one with more twice; n moves are past the last of n.
    """
    found: dict[int, dict[int, _Moves]] = {}
    for loop, pipeline in resolved.pipelines:
        steps = {id(copy): _steps(copy, loop, resolved) for copy in pipeline.copies} if pipeline.staged else {}
        if None not in steps.values():  # else windows are new ones in each iteration
            count = min(pipeline.stages, 2) + 1
            dims = {copy: {dim: _Moves(count, step) for dim, step in (of or {}).items()} for copy, of in steps.items()}
            found |= {copy: of for copy, of in dims.items() if of}
    return found


def _steps(copy: Copy, loop: Loop, resolved: Resolved) -> dict[int, int] | None:
    """How far the window of a prefetched copy moves along each dimension; None where it is a new one each time."""
    region, bounds = copy.src, resolved.bounds
    checked = tensor_view(region.buffer, resolved).checked
    starts = tuple(part.start for part in region.ranges)
    found = steps_of(starts, loop.var, bounds)
    if found is None or any(step for dim, step in enumerate(found) if dim not in region.kept):
        return None
    if any(checked[dim] and not begins_near(starts[dim], region.buffer.shape[dim], bounds) for dim in region.kept):
        return None
    return {dim: abs(step) for dim, step in enumerate(found) if step}


def _with_moves(tile: Expr, moves: _Moves) -> Expr:
    """How far a window overhangs that has moved past the last tile."""
    if moves.step == static_value(tile):
        return binary("*", int_const(moves.count + 1), tile)
    return binary("+", tile, int_const(moves.count * moves.step)) if moves.count else tile


def _with_first(tile: Expr, start: Expr, extent: Expr, resolved: Resolved) -> Expr:
    """How far a tile may overhang: one that is moved next to the tensor begins behind its last element."""
    return tile if begins_near(start, extent, resolved.bounds) else binary("+", tile, int_const(1))


def _of_loop(loop: Parallel, sizes: tuple[int, ...], tensor: Buffer) -> Iterator[tuple[int, int, Expr]]:
    """(dimension of the tensor, places of the layout along the variable that runs along it, index of the first)."""
    first: dict[Expr, Expr] = dict.fromkeys(loop.vars, int_const(0))
    lets = tuple(statements(loop.body, Let))
    for access in element_accesses(loop.body):
        if access.buffer is tensor:
            for dim, index in enumerate(access.indices):
                given = with_values(index, lets)
                used = variables(given)
                start = substitute(given, first)
                yield from ((dim, size, start) for var, size in zip(loop.vars, sizes, strict=True) if var in used)


def _may_overhang(extent: Expr, tile: int, checked: bool) -> bool:
    """Whether a tile may: where bounds are checked, or its distribution has idle places behind a static extent."""
    of = static_value(extent)
    return tile > 1 and (checked or (of is not None and tile > of))


def _of_region(region: Region, other: Region, resolved: Resolved) -> Iterator[tuple[int, Expr]]:
    """The extents of a box of a tensor along its dimensions, as the registers of a fragment cover them."""
    layout = resolved.facts.get(other.buffer, LAYOUT) if other.buffer.scope is Scope.FRAGMENT else None
    sizes = _rounded(layout, region.extents)
    for dim, extent, size in zip(region.kept, region.extents, sizes, strict=True):
        yield dim, extent if static_value(extent) == size else int_const(size)


def _rounded(layout: FragmentLayout | None, extents: tuple[Expr, ...]) -> tuple[int, ...]:
    """The extents that the places of a layout cover."""
    encoding = encoding_of(layout) if layout is not None else None
    if encoding is not None and len(encoding.shape) == len(extents):
        return encoding.shape
    return tuple(int(static_value(each) or 0) for each in extents)
