"""Bank conflicts of the reads by which MFMA operands leave the LDS (headers/tl/common/cdna/mfma_gemm.h)."""

from collections.abc import Callable, Iterator

from tile2cu.analysis.banks import lds_ways
from tile2cu.analysis.elements import byte_of
from tile2cu.core.decisions import LAYOUT, SHARED_LAYOUT
from tile2cu.core.layout import SharedLayout
from tile2cu.core.mfma_layout import WAVE, MfmaTile
from tile2cu.core.program import Buffer, Gemm
from tile2cu.plan.resolved import Resolved


def lds_ways_of(op: Gemm, resolved: Resolved, reads: tuple[int, int]) -> tuple[int, int]:
    """The conflict degree of the reads of A and of B, of so many bytes per lane; 0 of registers, and where unknown."""
    layout = resolved.facts[op.c.buffer, LAYOUT]
    assert isinstance(layout, MfmaTile)
    found, banks = [], resolved.target.banks
    for region, width, across, interleave in (
        (op.a, reads[0], op.transpose_a, 1),
        (op.b, reads[1], not op.transpose_b, layout.interleave),
    ):
        stored = resolved.facts.get(region.buffer, SHARED_LAYOUT)
        if not width or not isinstance(stored, SharedLayout) or not region.whole or len(stored.extents) != 2:
            found.append(0)
            continue
        element = stored.element_bits // 8
        if is_interleaved(region.buffer, resolved):
            of_lane = _columns(layout.size, width // RUN_BYTES)
        else:
            of_lane = _across_k(layout.size, interleave) if across else _along_k(layout.size, width // element)
        bases = [*_corners(stored, across, interleave * layout.size if across else layout.size)]
        reads_of_a_wave = ([byte_of(stored, of_lane(lane, base)) for lane in range(WAVE)] for base in bases)
        found.append(max(lds_ways(addresses, width, is_read=True, banks=banks) for addresses in reads_of_a_wave))
    return found[0], found[1]


RUN_BYTES = 8  # along K, of a lane and an MFMA


def is_interleaved(tile: Buffer, resolved: Resolved) -> bool:
    """Whether the neighbours of a run along K, which crosses the rows, are neighbours in the LDS."""
    stored = resolved.facts.get(tile, SHARED_LAYOUT)
    return isinstance(stored, SharedLayout) and stored.rows_interleaved > 1


_Base = tuple[int, int]


def _along_k(size: int, piece: int) -> Callable[[int, _Base], _Base]:
    """A lane reads `piece` neighbours along K of its line."""
    return lambda lane, base: (base[0] + lane % size, base[1] + piece * (lane // size))


def _across_k(size: int, interleave: int) -> Callable[[int, _Base], _Base]:
    """A lane reads neighbours of a row of K, one for each of `interleave` instructions; each group has 4 rows."""
    return lambda lane, base: (base[0] + 4 * (lane // size), base[1] + interleave * (lane % size))


def _columns(size: int, count: int) -> Callable[[int, _Base], _Base]:
    """A lane reads the runs of `count` neighbouring columns; each group of lanes has 8 rows, of which 4 are read."""
    return lambda lane, base: (base[0] // 4 * 4 + 8 * (lane // size), base[1] + count * (lane % size))


def _corners(stored: SharedLayout, across: bool, lines: int) -> Iterator[_Base]:
    """The first row and column of some of the reads: those of all lines, and of the first rows or pieces of K."""
    rows, cols = stored.extents
    if across:
        yield from ((row, line) for line in range(0, cols - lines + 1, lines) for row in range(4))
    else:
        yield from ((line, 0) for line in range(0, rows - lines + 1, lines))
