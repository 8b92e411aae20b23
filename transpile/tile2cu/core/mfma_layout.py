"""Layouts of the matrix cores of AMD's CDNA, for waves of 64. They print as the types of headers/tl/common/cdna."""

from typing import ClassVar

from msgspec.structs import replace

from tile2cu.core.layout import Along, FragmentLayout, Warps, WarpTile

WAVE = 64


class MfmaTile(WarpTile, frozen=True):
    """Base of tiles of v_mfma of `size` rows and columns: a lane holds columns of one row.

    Of `interleave` adjacent instructions each takes every `interleave`-th column; a lane holds `run` adjacent ones of
    its columns. [AMD Instinct MI300 ISA, "Dense Matrix Layouts"]
    """

    interleave: int = 1
    size: int = 16
    run: int = 4
    lanes: ClassVar[int] = WAVE
    unprinted: ClassVar[frozenset[str]] = frozenset(("size", "run"))

    @property
    def waves_of_columns(self) -> int:
        """Waves that hold different columns."""
        return 1

    def along(self, dim: int) -> Along:
        if dim == 0:
            return Along(self.size, self.warps.m, self.rows // (self.size * self.warps.m))
        lanes, waves = WAVE // self.size, self.waves_of_columns
        return Along(lanes, waves, self.cols // (lanes * waves))


class MfmaAccumulator(MfmaTile, frozen=True):
    """The result, computed as its transpose; wave (wm, wn) owns a contiguous part of the tile.

    It is also the A operand of an MMA when warps.n is 1.
    """

    @property
    def waves_of_columns(self) -> int:
        return self.warps.n

    def narrowest(self, kept: tuple[int, ...]) -> FragmentLayout:
        if kept == (0,):
            return replace(self, cols=self.size * self.warps.n, interleave=1)
        return replace(self, rows=self.size * self.warps.m)


class MfmaOperandA(MfmaTile, frozen=True):
    """The A operand for warps.n > 1: rows over warps.m, replicated over warps.n."""


def mfma_operand_a(rows: int, cols: int, warps: Warps, run: int, interleave: int = 1) -> FragmentLayout:
    """The A operand's layout; with one wave along the columns it is an accumulator's.

    A lane holds `run` times `interleave` adjacent columns, as many elements along K as one read of B gives it.
    """
    kind = MfmaAccumulator if warps.n == 1 else MfmaOperandA
    return kind(rows, cols, warps, interleave, run=run)
