"""Where the elements of a tile live: in the registers of which thread, or at which shared address.

Every layout prints as the C++ type of headers/tl that means the same (`cpp`), and as CuTe's
(thread, value) -> coordinate shape for people (`about`).
"""

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Warps:
    """How the warps of a block share a tile: `m` along its rows, `n` along its columns."""

    m: int
    n: int

    @property
    def count(self) -> int:
        return self.m * self.n


@dataclass(frozen=True)
class FragmentLayout:
    """Base of the layouts of register tiles. `registers` counts elements a thread holds."""

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def registers(self) -> int:
        raise NotImplementedError

    @property
    def replicas(self) -> int:
        """How many threads hold each element."""
        raise NotImplementedError


@dataclass(frozen=True)
class MmaAccumulator(FragmentLayout):
    """The accumulator of mma.m16n8: PTX ISA, "Matrix Fragments for mma.m16n8k16", C and D.

    Warp (wm, wn) owns a contiguous (rows / warps.m) x (cols / warps.n) part of the tile. It is also
    the A operand of a product when warps.n is 1: the accumulator's registers are the operand's.
    """

    rows: int
    cols: int
    warps: Warps

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.cols)

    @property
    def registers(self) -> int:
        return self.rows * self.cols // (32 * self.warps.count)

    @property
    def replicas(self) -> int:
        return 1


@dataclass(frozen=True)
class MmaOperandA(FragmentLayout):
    """The A operand of mma.m16n8k16 for warps.n > 1: rows over warps.m, replicated over warps.n."""

    rows: int
    cols: int
    warps: Warps

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.cols)

    @property
    def registers(self) -> int:
        return self.rows * self.cols // (32 * self.warps.m)

    @property
    def replicas(self) -> int:
        return self.warps.n


def mma_operand_a(rows: int, cols: int, warps: Warps) -> FragmentLayout:
    """The A operand's layout; with one warp along the columns it is an accumulator's."""
    if warps.n == 1:
        return MmaAccumulator(rows, cols, warps)
    return MmaOperandA(rows, cols, warps)


@dataclass(frozen=True)
class Blocked(FragmentLayout):
    """Threads in a row-major grid over the tile, `vector` consecutive elements of a row each.

    The grid repeats until the tile is covered; places past the tile's edge hold nothing. Threads of
    the block beyond the grid hold replicas.
    """

    extents: tuple[int, ...]
    threads: tuple[int, ...]
    vector: int
    block_threads: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.extents

    @property
    def registers(self) -> int:
        steps = [*self.threads[:-1], self.threads[-1] * self.vector]
        return prod(-(-extent // step) for extent, step in zip(self.extents, steps, strict=True)) * self.vector

    @property
    def replicas(self) -> int:
        return self.block_threads // prod(self.threads)


@dataclass(frozen=True)
class MmaRows(FragmentLayout):
    """One value a row of an MmaAccumulator: held by the 4 lanes of a row in each of warps.n warps."""

    rows: int
    warps: Warps

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows,)

    @property
    def registers(self) -> int:
        return self.rows // (8 * self.warps.m)

    @property
    def replicas(self) -> int:
        return 4 * self.warps.n


@dataclass(frozen=True)
class MmaCols(FragmentLayout):
    """One value a column of an MmaAccumulator: held by 8 lanes in each of warps.m warps."""

    cols: int
    warps: Warps

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.cols,)

    @property
    def registers(self) -> int:
        return self.cols // (4 * self.warps.n)

    @property
    def replicas(self) -> int:
        return 8 * self.warps.m


@dataclass(frozen=True)
class WgmmaAccumulator(FragmentLayout):
    """The accumulator of wgmma.m64nNk16: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", D.

    Warpgroup g owns rows / warpgroups consecutive rows, 64 at a time. It is also wgmma's A operand in
    registers.
    """

    rows: int
    cols: int
    warpgroups: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.cols)

    @property
    def registers(self) -> int:
        return self.rows * self.cols // (128 * self.warpgroups)

    @property
    def replicas(self) -> int:
        return 1


@dataclass(frozen=True)
class WgmmaRows(FragmentLayout):
    """One value a row of a WgmmaAccumulator: held by the 4 lanes of a row."""

    rows: int
    warpgroups: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows,)

    @property
    def registers(self) -> int:
        return self.rows // (32 * self.warpgroups)

    @property
    def replicas(self) -> int:
        return 4


@dataclass(frozen=True)
class WgmmaCols(FragmentLayout):
    """One value a column of a WgmmaAccumulator: held by 8 lanes of every warp."""

    cols: int
    warpgroups: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.cols,)

    @property
    def registers(self) -> int:
        return self.cols // 4

    @property
    def replicas(self) -> int:
        return 32 * self.warpgroups


@dataclass(frozen=True)
class BlockedSlice(FragmentLayout):
    """A Blocked layout of rank 2 with one dimension reduced away: replicated along its threads."""

    of: Blocked
    kept: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.of.extents[self.kept],)

    @property
    def registers(self) -> int:
        extent, threads = self.of.extents[self.kept], self.of.threads[self.kept]
        vector = self.of.vector if self.kept == 1 else 1
        return -(-extent // (threads * vector)) * vector

    @property
    def replicas(self) -> int:
        return self.of.block_threads // self.of.threads[self.kept]


@dataclass(frozen=True)
class Replicated(FragmentLayout):
    """Every thread holds the whole tile."""

    extents: tuple[int, ...]
    block_threads: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.extents

    @property
    def registers(self) -> int:
        return prod(self.extents)

    @property
    def replicas(self) -> int:
        return self.block_threads


def slice_of(layout: FragmentLayout, kept: int) -> FragmentLayout | None:
    """The layout of one value for each index of dimension `kept`; None where it has none.

    Equal slices of different layouts are equal objects, so that a row value may meet every tile
    whose rows it belongs to.
    """
    match layout:
        case MmaAccumulator() if kept == 0:
            return MmaRows(layout.rows, layout.warps)
        case MmaAccumulator():
            return MmaCols(layout.cols, layout.warps)
        case WgmmaAccumulator() if kept == 0:
            return WgmmaRows(layout.rows, layout.warpgroups)
        case WgmmaAccumulator():
            return WgmmaCols(layout.cols, layout.warpgroups)
        case Blocked() if len(layout.extents) == 2:
            return BlockedSlice(layout, kept)
        case Replicated() if len(layout.extents) == 2:
            return Replicated((layout.extents[kept],), layout.block_threads)
        case _:
            return None


def threads_along(layout: FragmentLayout, dim: int) -> tuple[int, int]:
    """(lanes of one warp, warps) that share the elements along dimension `dim`."""
    match layout:
        case MmaAccumulator():
            return (4, layout.warps.n) if dim == 1 else (8, layout.warps.m)
        case WgmmaAccumulator():
            return (4, 1) if dim == 1 else (8, 4 * layout.warpgroups)
        case Blocked():
            inner = prod(layout.threads[dim + 1 :])
            lanes = min(layout.threads[dim], max(1, 32 // inner))
            return lanes, -(-layout.threads[dim] // lanes)
        case _:
            return 1, 1


@dataclass(frozen=True)
class SharedLayout:
    """A tile in shared memory. Shape: (rows, cols) in elements, or (n,) for a vector.

    `swizzle` is the span in bytes over which 16-byte chunks are permuted: 128, 64, 32, or 0 for
    none; `padding` is the bytes added to each row. Rows wider than the span are stored as panels.
    """

    extents: tuple[int, ...]
    element_bytes: int
    swizzle: int = 0
    padding: int = 0

    @property
    def bytes(self) -> int:
        row = self.extents[-1] * self.element_bytes + self.padding
        return prod(self.extents[:-1]) * row

    @property
    def alignment(self) -> int:
        """Bytes; a swizzled tile starts at a multiple of eight of its spans."""
        return 8 * self.swizzle if self.swizzle else 16

    def __str__(self) -> str:
        if self.swizzle:
            return f"{self.swizzle}-byte swizzle"
        return f"rows padded by {self.padding} bytes" if self.padding else "no swizzle"
