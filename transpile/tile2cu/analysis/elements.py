"""Which thread and register hold which element of a fragment, and at which byte a shared tile stores an element.

The same formulas as the C++ types of headers/tl, which have the sources; tests compare the two.
"""

from collections import defaultdict
from collections.abc import Callable
from itertools import product
from math import prod

from tile2cu.core.layout import (
    Blocked,
    FragmentLayout,
    MmaAccumulator,
    MmaOperandA,
    MmaOperandB,
    Replicated,
    SharedLayout,
    Slice,
    SplitColumns,
    WgmmaAccumulator,
)
from tile2cu.core.memo import kept
from tile2cu.core.mfma_layout import WAVE, MfmaAccumulator, MfmaOperandA, MfmaTile

Coordinates = tuple[int, ...]
Holder = tuple[int, int]  # a thread, and its register
_Axis = Callable[[int, int], int]  # thread and register of the dimension -> coordinate

_CHUNK = 16  # bytes that a swizzle moves together: PTX ISA, "Swizzling Modes"


def element(layout: FragmentLayout, thread: int, register: int) -> Coordinates | None:
    """The coordinates of the element in a register of a thread; None for a register beyond the tile's edge."""
    if isinstance(layout, SplitColumns):
        row, col = _expect(element(layout.of, thread, register))
        return row, col // layout.width, col % layout.width
    if isinstance(layout, Slice) and isinstance(layout.of, SplitColumns):
        return _group(layout, layout.of, thread, register)
    registers = _registers_of(layout, register)
    found = tuple(axis(thread, each) for axis, each in zip(_axes(layout), registers, strict=True))
    inside = all(at < extent for at, extent in zip(found, layout.shape, strict=True))
    return found if inside else None


def holders(layout: FragmentLayout) -> dict[Coordinates, tuple[Holder, ...]]:
    """The threads and registers that hold each element, in the order of threads."""
    found: dict[Coordinates, list[Holder]] = defaultdict(list)
    for thread, register in product(range(layout.threads_of_block), range(layout.registers)):
        at = element(layout, thread, register)
        if at is not None:
            found[at].append((thread, register))
    return {at: tuple(threads) for at, threads in sorted(found.items())}


def warp_size(layout: FragmentLayout) -> int:
    """Threads of a warp, or of a wave."""
    match layout:
        case MfmaTile():
            return WAVE
        case Blocked():
            return layout.warp_size
        case Slice() | SplitColumns():
            return warp_size(layout.of)
        case _:
            return 32


def byte_of(layout: SharedLayout, at: Coordinates) -> int:
    """The offset in bytes of the element's first bit within the tile."""
    *planes, row, col = at if len(layout.extents) > 1 else _as_row(layout, at[0])
    plane = 0
    for index, extent in zip(planes, layout.extents, strict=False):
        plane = plane * extent + index
    bytes_of_plane = layout.bytes // max(1, prod(layout.extents[:-2])) if planes else 0
    return plane * bytes_of_plane + _byte_in_plane(layout, row, col * layout.element_bits // 8)


def _as_row(layout: SharedLayout, index: int) -> Coordinates:
    """A vector with a swizzle is stored as rows of the swizzle's span."""
    span = layout.swizzle * 8 // layout.element_bits or layout.extents[0]
    return divmod(index, span)


def _byte_in_plane(layout: SharedLayout, row: int, byte: int) -> int:
    if layout.rows_interleaved > 1:
        return _interleaved(layout, row, byte)
    if not layout.swizzle:
        return row * (layout.row_bytes + layout.padding) + byte
    span = layout.swizzle
    rows = layout.extents[-2] if len(layout.extents) > 1 else 0
    slab, in_slab = divmod(byte, span)
    chunk = in_slab // _CHUNK ^ (row // (128 // span) % (span // _CHUNK))
    return (slab * rows + row) * span + chunk * _CHUNK + in_slab % _CHUNK


def _interleaved(layout: SharedLayout, row: int, byte: int) -> int:
    size, together = layout.element_bits // 8, layout.rows_interleaved
    group, in_group = divmod(row, together)
    chunk, in_chunk = divmod((group * layout.row_bytes + byte) * together + in_group * size, _CHUNK)
    return (chunk ^ chunk // 8 % 4) * _CHUNK + in_chunk


def _expect(at: Coordinates | None) -> Coordinates:
    assert at is not None, "an accumulator has no registers beyond its edge"
    return at


def _group(layout: Slice, of: SplitColumns, thread: int, register: int) -> Coordinates:
    """The row and the group of columns of a value per row and group."""
    row, group = divmod(register, layout.along(1).registers)
    first = _axis(of.of, 1)(thread, 0) // of.width
    return _axis(of.of, 0)(thread, row), first + group


def _registers_of(layout: FragmentLayout, register: int) -> tuple[int, ...]:
    """The register of each dimension that a register of the tile is."""
    match layout:
        case MmaAccumulator() | MmaOperandA() | WgmmaAccumulator():
            tiles = layout.along(1).registers // 2  # of 8 columns
            row = register // (4 * tiles) * 2 + register // 2 % 2
            return row, register // 4 % tiles * 2 + register % 2
        case MmaOperandB():
            k = register // 2 % (layout.k // 8) * 2 + register % 2
            n = register // (layout.k // 4)
            return (n, k) if layout.transposed else (k, n)
        case _:
            return _row_major(register, _registers_along(layout))


@kept
def _registers_along(layout: FragmentLayout) -> tuple[int, ...]:
    """The registers of each dimension."""
    return tuple(layout.along(dim).registers for dim in range(len(layout.shape)))


def _row_major(index: int, extents: tuple[int, ...]) -> tuple[int, ...]:
    found: list[int] = []
    for extent in reversed(extents):
        index, at = divmod(index, extent)
        found.append(at)
    return tuple(reversed(found))


@kept
def _axes(layout: FragmentLayout) -> tuple[_Axis, ...]:
    """How threads partition each dimension."""
    return tuple(_axis(layout, dim) for dim in range(len(layout.shape)))


def _axis(layout: FragmentLayout, dim: int) -> _Axis:
    """How threads partition one dimension."""
    match layout:
        case MmaAccumulator() | MmaOperandA():
            own = layout.warps.n if isinstance(layout, MmaAccumulator) else 1
            return _mma_rows(layout.rows, layout.warps.m, layout.warps.n) if dim == 0 else _mma_cols(layout.cols, own)
        case MmaOperandB():
            along_k = dim == int(layout.transposed)
            return _mma_cols(layout.k, 1) if along_k else _mma_rows(layout.n, layout.warps.n, 1)
        case WgmmaAccumulator():
            return _wgmma_rows(layout) if dim == 0 else _mma_cols(layout.cols, layout.along_n, 4 * layout.along_m)
        case MfmaAccumulator() | MfmaOperandA():
            return _mfma_rows(layout) if dim == 0 else _mfma_cols(layout)
        case Blocked():
            return _blocked(layout, dim)
        case Slice():
            return _axis(layout.of, layout.kept[dim])
        case Replicated():
            return lambda _, register: register
        case _:
            raise TypeError(f"no elements are known of a {type(layout).__name__}")


def _mma_rows(rows: int, warps: int, stride: int) -> _Axis:
    def at(thread: int, register: int) -> int:
        warp, lane = divmod(thread, 32)
        return warp // stride % warps * (rows // warps) + register * 8 + lane // 4

    return at


def _mma_cols(cols: int, warps: int, stride: int = 1) -> _Axis:
    def at(thread: int, register: int) -> int:
        warp, lane = divmod(thread, 32)
        return warp // stride % warps * (cols // warps) + register // 2 * 8 + lane % 4 * 2 + register % 2

    return at


def _wgmma_rows(layout: WgmmaAccumulator) -> _Axis:
    def at(thread: int, register: int) -> int:
        warp, lane = divmod(thread, 32)
        first = warp // 4 % layout.along_m * (layout.rows // layout.along_m) + warp % 4 * 16
        return first + register // 2 * 64 + register % 2 * 8 + lane // 4

    return at


def _mfma_rows(layout: MfmaTile) -> _Axis:
    def at(thread: int, register: int) -> int:
        wave, lane = divmod(thread, WAVE)
        first = wave // layout.warps.n % layout.warps.m * (layout.rows // layout.warps.m)
        return first + register * layout.size + lane % layout.size

    return at


def _mfma_cols(layout: MfmaTile) -> _Axis:
    run, waves = layout.interleave * layout.run, layout.waves_of_columns

    def at(thread: int, register: int) -> int:
        wave, lane = divmod(thread, WAVE)
        first = wave % waves * (layout.cols // waves)
        return first + run * (WAVE // layout.size * (register // run) + lane // layout.size) + register % run

    return at


def _blocked(layout: Blocked, dim: int) -> _Axis:
    last = len(layout.extents) - 1
    run = layout.vector if dim == last else layout.rows if dim == 0 else 1
    threads, stride = layout.threads[dim], prod(layout.threads[dim + 1 :])

    def at(thread: int, register: int) -> int:
        return (register // run * threads + thread // stride % threads) * run + register % run

    return at
