"""Layouts of the matrix cores of AMD's CDNA, for waves of 64. They print as the types of headers/tl/common/cdna."""

from dataclasses import dataclass, field, replace

from tile2cu.core.layout import Along, FragmentLayout, Warps

WAVE = 64


@dataclass(frozen=True)
class MfmaAccumulator(FragmentLayout):
    """The result of v_mfma of `size` rows and columns, computed as its transpose: a lane holds columns of one row.

    [AMD Instinct MI300 ISA, "Dense Matrix Layouts"]. Wave (wm, wn) owns a contiguous part of the tile. Of
    `interleave` instructions side by side each takes every so manieth column; `run` neighbours of its own
    columns are in a lane. It is also the A operand of a product when warps.n is 1.
    """

    rows: int
    cols: int
    warps: Warps
    interleave: int = 1
    size: int = field(default=16, repr=False)
    run: int = field(default=4, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.cols)

    @property
    def threads_of_block(self) -> int:
        return WAVE * self.warps.count

    def along(self, dim: int) -> Along:
        if dim == 0:
            return Along(self.size, self.warps.m, self.rows // (self.size * self.warps.m))
        lanes = WAVE // self.size
        return Along(lanes, self.warps.n, self.cols // (lanes * self.warps.n))

    def narrowest(self, kept: tuple[int, ...]) -> FragmentLayout:
        if kept == (0,):
            return replace(self, cols=self.size * self.warps.n, interleave=1)
        return replace(self, rows=self.size * self.warps.m)


@dataclass(frozen=True)
class MfmaOperandA(FragmentLayout):
    """The A operand for warps.n > 1: rows over warps.m, replicated over warps.n."""

    rows: int
    cols: int
    warps: Warps
    interleave: int = 1
    size: int = field(default=16, repr=False)
    run: int = field(default=4, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.cols)

    @property
    def threads_of_block(self) -> int:
        return WAVE * self.warps.count

    def along(self, dim: int) -> Along:
        if dim == 0:
            return Along(self.size, self.warps.m, self.rows // (self.size * self.warps.m))
        lanes = WAVE // self.size
        return Along(lanes, 1, self.cols // lanes)


def mfma_operand_a(rows: int, cols: int, warps: Warps, run: int) -> FragmentLayout:
    """The A operand's layout; with one wave along the columns it is an accumulator's."""
    kind = MfmaAccumulator if warps.n == 1 else MfmaOperandA
    return kind(rows, cols, warps, run=run)
