"""Layouts of the elements of a tile: registers of threads, or shared-memory addresses.

Every layout prints as the C++ type of headers/tl with the same meaning (`cpp`), and as CuTe's (thread, value) ->
coordinate shape (`about`).
"""

from math import prod
from typing import ClassVar

from msgspec.structs import replace

from tile2cu.core.fields import fields_of
from tile2cu.core.record import Record


class Warps(Record, frozen=True):
    """How the warps of a block partition a tile: `m` along its rows, `n` along its columns."""

    m: int
    n: int

    @property
    def count(self) -> int:
        return self.m * self.n


class Along(Record, frozen=True):
    """How the threads partition one dimension of a tile: `lanes` of a warp, and `warps`, take different elements.

    Lanes are those that a butterfly shuffle can exchange with, a power of two; the remaining factor counts as warps.
    `registers` counts the elements of the dimension that each of them holds.
    """

    lanes: int
    warps: int
    registers: int


class FragmentLayout(Record, frozen=True):
    """Base of the layouts of register tiles: each dimension is partitioned among the threads separately.

    A kind of layout defines its `shape`, the `threads_of_block` and, for each dimension, what is `along` it; and, for a
    slice, its `narrowest` tile with the same partition. All else follows.
    """

    unprinted: ClassVar[frozenset[str]] = frozenset()  # fields that are left out of a layout's text

    def __repr__(self) -> str:
        printed = (f"{name}={value!r}" for name, value in fields_of(self).items() if name not in self.unprinted)
        return f"{type(self).__name__}({', '.join(printed)})"

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def threads_of_block(self) -> int:
        raise NotImplementedError

    def along(self, dim: int) -> Along:
        raise NotImplementedError

    def narrowest(self, kept: tuple[int, ...]) -> "FragmentLayout | None":
        """The smallest tile with the same `kept` dimensions; None where a slice has no C++ type."""
        return None

    @property
    def registers(self) -> int:
        """Elements that a thread holds."""
        return prod(self.along(dim).registers for dim in range(len(self.shape)))

    def words(self, element_bytes: int) -> int:
        """Registers of 4 bytes per thread for a tile of such elements."""
        return -(-self.registers * element_bytes // 4)

    @property
    def replicas(self) -> int:
        """How many threads hold each element, at most."""
        sharing = (self.along(dim) for dim in range(len(self.shape)))
        return -(-self.threads_of_block // prod(part.lanes * part.warps for part in sharing))


class WarpTile(FragmentLayout, frozen=True):
    """Base of the tiles of rows and columns that warps of `lanes` lanes partition as a matrix instruction does."""

    rows: int
    cols: int
    warps: Warps
    lanes: ClassVar[int] = 32

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.cols)

    @property
    def threads_of_block(self) -> int:
        return self.lanes * self.warps.count


class MmaAccumulator(WarpTile, frozen=True):
    """The accumulator of mma.m16n8: PTX ISA, "Matrix Fragments for mma.m16n8k16", C and D.

    Warp (wm, wn) owns a contiguous (rows / warps.m) x (cols / warps.n) part of the tile. It is also the A operand of an
    MMA when warps.n is 1: the accumulator's registers are the operand's.
    """

    def along(self, dim: int) -> Along:
        if dim == 0:
            return Along(8, self.warps.m, self.rows // (8 * self.warps.m))
        return Along(4, self.warps.n, self.cols // (4 * self.warps.n))

    def narrowest(self, kept: tuple[int, ...]) -> FragmentLayout:
        if kept == (0,):
            return MmaAccumulator(self.rows, 8 * self.warps.n, self.warps)
        return MmaAccumulator(16 * self.warps.m, self.cols, self.warps)


class MmaOperandA(WarpTile, frozen=True):
    """The A operand of mma.m16n8k16 for warps.n > 1: rows over warps.m, replicated over warps.n."""

    def along(self, dim: int) -> Along:
        return Along(8, self.warps.m, self.rows // (8 * self.warps.m)) if dim == 0 else Along(4, 1, self.cols // 4)

    def narrowest(self, kept: tuple[int, ...]) -> FragmentLayout:
        if kept == (0,):  # the rows of the accumulator
            return MmaAccumulator(self.rows, 8 * self.warps.n, self.warps)
        return MmaAccumulator(16 * self.warps.count, self.cols, Warps(self.warps.count, 1))


def mma_operand_a(rows: int, cols: int, warps: Warps) -> FragmentLayout:
    """The A operand's layout; with one warp along the columns it is an accumulator's."""
    if warps.n == 1:
        return MmaAccumulator(rows, cols, warps)
    return MmaOperandA(rows, cols, warps)


class MmaOperandB(FragmentLayout, frozen=True):
    """The B operand of mma.m16n8k16: columns over warps.n, replicated over warps.m.

    It is stored as the GEMM has it, K x N, or `transposed`, N x K.
    """

    k: int
    n: int
    warps: Warps
    transposed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n, self.k) if self.transposed else (self.k, self.n)

    @property
    def threads_of_block(self) -> int:
        return 32 * self.warps.count

    def along(self, dim: int) -> Along:
        if dim == int(self.transposed):
            return Along(4, 1, self.k // 4)
        return Along(8, self.warps.n, self.n // (8 * self.warps.n))

    def narrowest(self, kept: tuple[int, ...]) -> FragmentLayout:
        keeps_k = kept == (int(self.transposed),)
        k, n = (self.k, 8 * self.warps.n) if keeps_k else (16, self.n)
        return MmaOperandB(k, n, self.warps, self.transposed)


class WgmmaAccumulator(FragmentLayout, frozen=True):
    """The accumulator of wgmma.m64nNk16: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", D.

    Warpgroup g owns the (g % along_m)-th of along_m equal parts of the rows, 64 at a time, and of them the (g /
    along_m)-th of along_n parts of the columns. It is also wgmma's A operand in registers, of which each of the
    `copies` warpgroups along the columns of the GEMM holds one.
    """

    rows: int
    cols: int
    along_m: int
    along_n: int = 1
    copies: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.cols)

    @property
    def threads_of_block(self) -> int:
        return 128 * self.along_m * self.along_n * self.copies

    def along(self, dim: int) -> Along:
        warps = 4 * self.along_m
        if dim == 0:
            return Along(8, warps, self.rows // (8 * warps))
        return Along(4, self.along_n, self.cols // (4 * self.along_n))

    def narrowest(self, kept: tuple[int, ...]) -> FragmentLayout:
        if kept == (0,):  # the rows of an accumulator and of its A operand are the same
            return WgmmaAccumulator(self.rows, 8, self.along_m, copies=self.along_n * self.copies)
        return replace(self, rows=64 * self.along_m)


class Blocked(FragmentLayout, frozen=True):
    """Threads in a row-major grid over the tile, `vector` consecutive elements of a row each.

    The grid repeats until the tile is covered; coordinates past the tile's edge hold nothing. Threads of the block
    beyond the grid hold replicas. In two dimensions a thread may have `rows` consecutive rows at a time.
    """

    extents: tuple[int, ...]
    threads: tuple[int, ...]
    vector: int
    block_threads: int
    rows: int = 1
    warp_size: int = 32
    unprinted: ClassVar[frozenset[str]] = frozenset(("warp_size",))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.extents

    @property
    def threads_of_block(self) -> int:
        return self.block_threads

    def along(self, dim: int) -> Along:
        vector = self.vector if dim == len(self.extents) - 1 else self.rows
        stride = prod(self.threads[dim + 1 :])
        flips = stride < self.warp_size and stride & -stride == stride
        lanes = min(self.threads[dim] & -self.threads[dim], self.warp_size // stride) if flips else 1
        registers = -(-self.extents[dim] // (self.threads[dim] * vector)) * vector
        return Along(lanes, -(-self.threads[dim] // lanes), registers)

    def parts_within_warps(self, dim: int) -> bool:
        """Whether lanes of one warp hold parts of the dimension that a butterfly shuffle cannot exchange."""
        shared = self.along(dim)
        return shared.warps > 1 and shared.lanes * prod(self.threads[dim + 1 :]) < self.warp_size

    @property
    def has_idle_lanes(self) -> bool:
        """Whether some of the grid's coordinates are past the tile's edge."""
        return self.registers * prod(self.threads) > prod(self.extents)

    def narrowest(self, kept: tuple[int, ...]) -> FragmentLayout:
        last = len(self.extents) - 1
        extents = tuple(extent if dim in kept else self.threads[dim] for dim, extent in enumerate(self.extents))
        vector, rows = self.vector if last in kept else 1, self.rows if 0 in kept else 1
        return replace(self, extents=extents, vector=vector, rows=rows)


class SplitColumns(FragmentLayout, frozen=True):
    """The columns of a tensor core's accumulator in groups of `width`: (row, group, column in the group).

    Constructed by `split_columns`. Elements stay in the registers of `of`.
    """

    of: FragmentLayout
    width: int

    @property
    def shape(self) -> tuple[int, ...]:
        rows, cols = self.of.shape
        return (rows, cols // self.width, self.width)

    @property
    def threads_of_block(self) -> int:
        return self.of.threads_of_block

    def along(self, dim: int) -> Along:
        if dim == 0:
            return self.of.along(0)
        cols = self.of.along(1)
        warp_cols = cols.lanes * cols.registers
        sharing = max(1, self.width // warp_cols)  # warps that share a group
        if dim == 1:
            return Along(1, cols.warps // sharing, max(1, warp_cols // self.width))
        return Along(cols.lanes, sharing, min(self.width, warp_cols) // cols.lanes)

    def narrowest(self, kept: tuple[int, ...]) -> FragmentLayout:
        return self


def split_columns(layout: FragmentLayout, width: int) -> SplitColumns | None:
    """The layout with its columns in groups; None where a group is no run of whole registers and warps."""
    if not isinstance(layout, MmaAccumulator | WgmmaAccumulator) or width % 8:
        return None
    cols = layout.along(1)
    warp_cols = cols.lanes * cols.registers
    return SplitColumns(layout, width) if warp_cols % width == 0 or width % warp_cols == 0 else None


class Replicated(FragmentLayout, frozen=True):
    """Every thread holds the whole tile."""

    extents: tuple[int, ...]
    block_threads: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.extents

    @property
    def threads_of_block(self) -> int:
        return self.block_threads

    def along(self, dim: int) -> Along:
        return Along(1, 1, self.extents[dim])


class Slice(FragmentLayout, frozen=True):
    """One value for each coordinate of the `kept` dimensions of a tile, in all threads that hold an element with it.

    Constructed by `slice_of`: `of` is the narrowest tile with this slice, so that equal slices of different tiles are
    equal, and a value per row may be used with every tile that has its rows.
    """

    of: FragmentLayout
    kept: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.of.shape[dim] for dim in self.kept)

    @property
    def threads_of_block(self) -> int:
        return self.of.threads_of_block

    def along(self, dim: int) -> Along:
        return self.of.along(self.kept[dim])

    def __str__(self) -> str:
        return f"{SLICES[len(self.of.shape), self.kept][1]} of {self.of}"


# The slices that have a C++ type, by the tile's rank and the dimensions kept: the removed dimension, and the rest.
SLICES = {(2, (0,)): (1, "rows"), (2, (1,)): (0, "columns"), (3, (0, 1)): (2, "planes")}


def slice_of(layout: FragmentLayout, kept: tuple[int, ...]) -> FragmentLayout | None:
    """The layout of one value for each coordinate of the `kept` dimensions; None where it has no C++ type."""
    if isinstance(layout, Replicated):
        return Replicated(tuple(layout.extents[dim] for dim in kept), layout.block_threads)
    if (len(layout.shape), kept) not in SLICES:
        return None
    if kept == (0, 1) and isinstance(layout, Blocked) and layout.threads[2] == 1:
        return replace(layout, extents=layout.extents[:2], threads=layout.threads[:2], vector=1)
    of = layout.narrowest(kept)
    return None if of is None else Slice(of, kept)


def widest_swizzle_of(row_bytes: int) -> int:
    """The widest span, in bytes, that a swizzle permutes and that divides a row: 128, 64 or 32; 0 for none."""
    return next((span for span in (128, 64, 32) if row_bytes % span == 0), 0)


class SharedLayout(Record, frozen=True):
    """A tile in shared memory. Shape: (rows, cols) in elements, (n,) for a vector, or planes of (rows, cols).

    `swizzle` is the span in bytes over which 16-byte chunks are permuted: 128, 64, 32, or 0 for none; `padding` is the
    bytes added to each row. Rows wider than the span are stored as several slabs of that width. Of `rows_interleaved`
    other than 1, groups of so many rows are stored column by column, and the tile's 16-byte chunk c is at
    c ^ ((c / 8) % 4).
    """

    extents: tuple[int, ...]
    element_bits: int
    swizzle: int = 0
    padding: int = 0
    rows_interleaved: int = 1

    @property
    def row_bytes(self) -> int:
        """Without padding."""
        return self.extents[-1] * self.element_bits // 8

    @property
    def slabs(self) -> int:
        """The number of slabs, each as wide as the swizzle's span."""
        return max(1, self.row_bytes // self.swizzle) if self.swizzle else 1

    @property
    def bytes(self) -> int:
        row = self.row_bytes + self.padding
        plane = prod(self.extents[-2:-1]) * row
        planes = prod(self.extents[:-2])
        return plane if planes == 1 else planes * -(-plane // self.alignment) * self.alignment

    @property
    def alignment(self) -> int:
        """Bytes; a swizzled tile starts at a multiple of eight of its spans."""
        return 8 * self.swizzle if self.swizzle else 16

    def __str__(self) -> str:
        if self.rows_interleaved > 1:
            return f"rows interleaved by {self.rows_interleaved}"
        if self.swizzle:
            return f"{self.swizzle}-byte swizzle"
        return f"rows padded by {self.padding} bytes" if self.padding else "no swizzle"
