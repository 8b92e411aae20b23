"""How many sectors of global memory the lanes of a warp touch in an elementwise loop."""

from collections.abc import Iterator
from math import prod

from tile2cu.analysis.accesses import Access, element_accesses
from tile2cu.analysis.bounds import Bounds
from tile2cu.core.expr import Expr, Var, static_value, walk
from tile2cu.core.layout import Blocked
from tile2cu.core.program import Buffer, Parallel, Scope
from tile2cu.core.record import Record

SECTOR_BYTES = 32  # CUDA C++ Best Practices Guide, 'Coalesced Access to Global Memory'
_FAR = 1 << 20  # elements of a row whose length is known only at run time


class WarpAccess(Record, frozen=True, kw_only=True):
    """The accesses of one warp to a tensor: sectors touched, and those that its elements would fill.

    `bytes` is what the whole loop accesses.
    """

    access: Access
    sectors: int
    least: int
    bytes: int


def warp_accesses(loop: Parallel, layout: Blocked, bounds: Bounds) -> Iterator[WarpAccess]:
    """The accesses to tensors whose addresses are linear in the variables of a loop with that layout."""
    extents = dict(zip(loop.vars, layout.extents, strict=True))
    lanes = list(_elements_of_a_warp(layout))
    for access in element_accesses((loop,)):
        steps = _steps(access, loop.vars, bounds) if _is_plain(access) else None
        if not steps or not lanes:
            continue
        width = access.buffer.dtype.bits
        offsets = {sum(steps.get(var, 0) * at for var, at in zip(loop.vars, place, strict=True)) for place in lanes}
        lowest = min(offsets)
        sectors = {(offset - lowest) * width // (8 * SECTOR_BYTES) for offset in offsets}
        yield WarpAccess(
            access=access,
            sectors=len(sectors),
            least=-(-len(offsets) * width // (8 * SECTOR_BYTES)),
            bytes=prod(extents[var] for var in steps) * width // 8,
        )


def _is_plain(access: Access) -> bool:
    buffer = access.buffer
    return buffer.scope is Scope.GLOBAL and buffer.strides is None and not access.atomic


def _elements_of_a_warp(layout: Blocked) -> Iterator[tuple[int, ...]]:
    """The coordinates of the elements that the first warp accesses together."""
    for lane in range(min(layout.warp_size, prod(layout.threads))):
        place: list[int] = []
        for count in reversed(layout.threads):
            place.insert(0, lane % count)
            lane //= count
        if layout.rows == 1 and all(at < extent for at, extent in zip(place[:-1], layout.extents, strict=False)):
            for element in range(layout.vector):
                last = place[-1] * layout.vector + element
                if last < layout.extents[-1]:
                    yield (*place[:-1], last)


def _steps(access: Access, loop_vars: tuple[Var, ...], bounds: Bounds) -> dict[Var, int] | None:
    """By how many elements the address moves with each variable; None where it is not linear in them."""
    found: dict[Var, int] = {}
    for index, stride in zip(access.indices, _strides(access.buffer), strict=True):
        for atom, factor in bounds.linear(index).terms.items():
            if isinstance(atom, Var) and atom in loop_vars:
                found[atom] = found.get(atom, 0) + factor * stride
            elif _mentions(bounds.expanded(atom), loop_vars):
                return None
    return found


def _mentions(expr: Expr, names: tuple[Var, ...]) -> bool:
    return any(part in names for part in walk(expr) if isinstance(part, Var))


def _strides(buffer: Buffer) -> list[int]:
    strides = [1]
    for extent in reversed(buffer.shape[1:]):
        strides.insert(0, strides[0] * int(static_value(extent) or _FAR))
    return strides
