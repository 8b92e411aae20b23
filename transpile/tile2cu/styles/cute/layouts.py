"""Layouts of shared tiles and accumulators as CuTe's types."""

from math import gcd, prod

from tile2cu.core.layout import Blocked, MmaAccumulator, SharedLayout
from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.core.schedule import log2_of

_CHUNK = 16  # bytes: what a swizzle permutes
_ATOM_ROWS = 8
_BITS = {32: 1, 64: 2, 128: 3}  # of a swizzle, by its width in bytes
# MMA_Atom by the name of the instruction.
ATOMS = {
    "mma.m16n8k16.f16.f16.f16.f16": "SM80_16x8x16_F16F16F16F16_TN",
    "mma.m16n8k32.s32.s8.s8.s32": "SM80_16x8x32_S32S8S8S32_TN",
    "mma.m16n8k32.s32.u8.u8.s32": "SM80_16x8x32_S32U8U8S32_TN",
    "mma.m16n8k16.f32.f16.f16.f32": "SM80_16x8x16_F32F16F16F32_TN",
    "mma.m16n8k16.f32.bf16.bf16.f32": "SM80_16x8x16_F32BF16BF16F32_TN",
    # two MMAs of half the operands each
    "mma.m16n8k32.f32.e4m3.e4m3.f32 through float16": "SM80_16x8x16_F32F16F16F32_TN",
    "mma.m16n8k32.f32.e5m2.e5m2.f32 through float16": "SM80_16x8x16_F32F16F16F32_TN",
}


class SwizzledAtom(Record, frozen=True, kw_only=True):
    """composition(Swizzle<bits, base, 3>, Layout<Shape<rows, cols>, Stride<cols, 1>>), in elements."""

    bits: int
    base: int
    rows: int
    cols: int

    def __str__(self) -> str:
        layout = f"Layout<Shape<{static(self.rows)}, {static(self.cols)}>, Stride<{static(self.cols)}, _1>>{{}}"
        return f"composition(Swizzle<{self.bits}, {self.base}, 3>{{}}, {layout})" if self.bits else layout


def atom(layout: SharedLayout) -> SwizzledAtom | None:
    """The atom that `tile_to_shape` repeats, down the rows first: panels as wide as the swizzle.

    None where the layout is no such tile: padded rows, or elements that share bytes.
    """
    if len(layout.extents) != 2 or layout.padding or layout.element_bits < 8:
        return None
    rows, cols = layout.extents
    bytes_ = layout.element_bits // 8
    if not layout.swizzle:
        return SwizzledAtom(bits=0, base=0, rows=1, cols=cols)
    if rows % _ATOM_ROWS or layout.row_bytes % layout.swizzle:
        return None
    bits = _BITS[layout.swizzle]
    base = (_CHUNK // bytes_).bit_length() - 1
    return SwizzledAtom(bits=bits, base=base, rows=_ATOM_ROWS, cols=layout.swizzle // bytes_)


def vector_swizzle(layout: SharedLayout) -> str | None:
    """The swizzle of a tile of one dimension, stored as rows as wide as the swizzle; None where these are no atoms."""
    bits, rows = _BITS[layout.swizzle], _ATOM_ROWS * layout.swizzle
    if layout.element_bits < 8 or layout.padding or layout.bytes % rows:
        return None
    return f"Swizzle<{bits}, {(_CHUNK // (layout.element_bits // 8)).bit_length() - 1}, 3>{{}}"


def adds_up(layout: SharedLayout, dim: int, start: int, extent: int) -> bool:
    """Whether `extent` places along a dimension can start at a multiple of `start`, a power of two.

    CuTe adds offsets within the atoms of a swizzled tile bit by bit: their sums must have no carry.
    """
    columns = layout.swizzle * 8 // layout.element_bits
    atom = {len(layout.extents) - 1: columns, len(layout.extents) - 2: _ATOM_ROWS}.get(dim, 1)
    atom = atom if len(layout.extents) > 1 else layout.extents[0]
    return not layout.swizzle or start % atom == 0 or start % (1 << (extent - 1).bit_length()) == 0


def is_stacked(tile: Buffer, layout: SharedLayout) -> bool:
    """Whether a tile is several swizzled ones: its first dimension is then the last mode, as that of stages."""
    return tile.rank == 3 and bool(layout.swizzle)


def swizzled_atom(layout: SharedLayout, element: str) -> str:
    """CUTLASS's name of the same atom, with which TMA and wgmma address a tile of rows."""
    return f"GMMA::Layout_K_SW{layout.swizzle}_Atom<{element}>{{}}"


def tiled_mma(layout: MmaAccumulator, atom_name: str, k: int) -> str:
    """The TiledMMA whose C is the accumulator: a warp holds contiguous rows and columns of the tile, or its
    instructions alternate with those of the other warps (`which_warp`).
    """
    warps, (rows, cols) = layout.warps, _of_warp(layout)
    along_m = _permutation(16, warps.m, rows)
    along_n = _permutation(8, warps.n, cols)
    atom_layout = f"Layout<Shape<{static(warps.m)}, {static(warps.n)}>, Stride<{static(warps.n)}, _1>>{{}}"
    return f"make_tiled_mma(MMA_Atom<{atom_name}>{{}}, {atom_layout}, Tile<{along_m}, {along_n}, {static(k)}>{{}})"


def _of_warp(layout: MmaAccumulator) -> tuple[int, int]:
    """The rows and columns of a warp."""
    return layout.rows // layout.warps.m, layout.cols // layout.warps.n


def which_warp(layout: MmaAccumulator) -> str:
    """Which warp holds what where instructions alternate among warps; empty where a warp's part is contiguous.

    CuTe offsets swizzled tiles by powers of two only, so warps cannot begin at multiples of 48 columns.
    """
    warps, (rows, cols) = layout.warps, _of_warp(layout)
    if all(count == 1 or log2_of(extent) is not None for count, extent in ((warps.m, rows), (warps.n, cols))):
        return ""
    m, n = ("w", "") if warps.n == 1 else (f"(w / {warps.n})", f"(w % {warps.n})")
    return f"warp w holds {_part('rows', 16, warps.m, rows, m)} and {_part('columns', 8, warps.n, cols, n)}"


def _part(name: str, instruction: int, warps: int, extent: int, warp: str) -> str:
    """Of one dimension, in words: what a warp holds of a tile."""
    if warps == 1:
        return f"all {name}"
    if log2_of(extent) is not None:
        return f"{extent} {name} from {extent} {warp}"
    return f"{instruction} {name} from {instruction} {warp} of each {instruction * warps}"


def _permutation(instruction: int, warps: int, extent: int) -> str:
    """Along M or N: the instruction's own, then warps at the distance of what one holds, then its instructions."""
    if warps == 1 or extent == instruction:
        return static(warps * extent)
    if log2_of(extent) is None:  # columns of two instructions, which one ldmatrix.x4 loads
        return static(warps * (16 if extent % 16 == 0 else instruction))
    shape = f"Shape<{static(instruction)}, {static(warps)}, {static(extent // instruction)}>"
    return f"Layout<{shape}, Stride<_1, {static(extent)}, {static(instruction)}>>"


def threads_and_values(layout: Blocked) -> str:
    """The two layouts of the TiledCopy that partitions a tile so: threads row by row, then the values of each."""
    values = [1] * len(layout.extents)
    values[-1] = layout.vector
    if layout.rows > 1:
        values[0] = layout.rows
    return f"{_row_major(layout.threads)}, {_row_major(tuple(values)) if layout.rows > 1 else _shape(tuple(values))}"


def _row_major(extents: tuple[int, ...]) -> str:
    strides = [prod(extents[dim + 1 :]) for dim in range(len(extents))]
    shape = ", ".join(map(static, extents))
    return (
        f"Layout<Shape<{shape}>, Stride<{', '.join(map(static, strides))}>>{{}}"
        if len(extents) > 1
        else _shape(extents)
    )


def _shape(extents: tuple[int, ...]) -> str:
    return f"Layout<Shape<{', '.join(map(static, extents))}>>{{}}"


class CopyThreads(Record, frozen=True, kw_only=True):
    """A grid of threads, row by row, of which each moves `vector` neighbours of a row at once."""

    threads: tuple[int, ...]
    vector: int

    def __str__(self) -> str:
        return f"{_row_major(self.threads)}, {_shape((*[1] * (len(self.threads) - 1), self.vector))}"


def copy_threads(extents: tuple[int, ...], vector: int, threads: int) -> CopyThreads | None:
    """The threads that share the copy of a tile, perhaps fewer than all; None where vectors do not divide it."""
    if extents[-1] % vector:
        return None
    grid, left = [1] * len(extents), threads
    for dim in reversed(range(len(extents))):
        grid[dim] = gcd(extents[dim] // vector if dim == len(extents) - 1 else extents[dim], left)
        left //= grid[dim]
    return CopyThreads(threads=tuple(grid), vector=vector)


def static(value: int) -> str:
    """A static integer: CuTe has short names for the common ones."""
    common = value <= 8 or value in (10, 12, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
    return f"_{value}" if common else f"Int<{value}>"
