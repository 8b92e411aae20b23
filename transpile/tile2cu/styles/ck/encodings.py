"""Layouts as ck_tile's `tile_distribution_encoding`: each coordinate is a number whose digits come from the warp, the
lane, or a register.

ck_tile names a digit by its dimension (from 1; 0 are the digits R that no dimension has, of threads that hold copies)
and its position there, the most significant first. Of warps (P0), lanes (P1, or P0 where the block is one warp) and
registers (Y) the encoding lists the digits, the most significant first.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import gcd, prod

from msgspec.structs import replace

from tile2cu.core.layout import Blocked, FragmentLayout
from tile2cu.core.mfma_layout import WAVE, MfmaTile
from tile2cu.core.record import Record
from tile2cu.styles.base.digits import Digit, Source, digits_of, in_sum, register


class Encoding(Record, frozen=True):
    """An encoding: the lengths of the digits of R and of each dimension, and (dimension, position) of P and Y."""

    rs: tuple[int, ...]
    hs: tuple[tuple[int, ...], ...]
    ps: tuple[tuple[tuple[int, int], ...], ...]
    ys: tuple[tuple[int, int], ...]
    sums: tuple[str, ...]  # of each dimension's digits, in words

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tile, which a layout with idle places exceeds."""
        return tuple(map(prod, self.hs))

    @property
    def registers(self) -> int:
        """Elements that a thread holds."""
        return prod(self.hs[dim - 1][at] for dim, at in self.ys)

    def element(self, warp: int, lane: int, register: int) -> tuple[int, ...]:
        """The coordinates of the element in a register of a thread, as ck_tile computes them."""
        digits: dict[tuple[int, int], int] = {}
        sources = (warp, lane) if len(self.ps) == 2 else (lane,)
        for places, number in zip((*self.ps, self.ys), (*sources, register), strict=True):
            for place in reversed(places):
                number, digits[place] = divmod(number, self._length(place))
        found = []
        for dim, lengths in enumerate(self.hs, 1):
            at = 0
            for position, length in enumerate(lengths):
                at = at * length + digits[dim, position]
            found.append(at)
        return tuple(found)

    def _length(self, place: tuple[int, int]) -> int:
        dim, at = place
        return self.rs[at] if dim == 0 else self.hs[dim - 1][at]

    def __str__(self) -> str:
        hs = ", ".join(_sequence(each) for each in self.hs)
        majors = ", ".join(_sequence(dim for dim, _ in each) for each in self.ps)
        minors = ", ".join(_sequence(at for _, at in each) for each in self.ps)
        ys = f"{_sequence(dim for dim, _ in self.ys)}, {_sequence(at for _, at in self.ys)}"
        of_rs_and_hs = f"{_sequence(self.rs)}, tuple<{hs}>"
        return f"tile_distribution_encoding<{of_rs_and_hs}, tuple<{majors}>, tuple<{minors}>, {ys}>"

    def about(self, over: Sequence[str]) -> tuple[str, ...]:
        """Each coordinate by wave, lane and value; `over` are the names of the dimensions."""
        return tuple(f"{name} = {total}" for name, total in zip(over, self.sums, strict=True))


def _sequence(values: Iterable[int]) -> str:
    return f"sequence<{', '.join(map(str, values))}>"


def encode(digits: Iterable[Digit], rank: int, threads: int) -> Encoding | None:
    """The encoding of a layout of `threads` threads whose elements have these digits; None where there is none."""
    found = [each for each in digits if each.length > 1]
    if threads % WAVE:
        return None
    registers = [each for each in found if each.source is Source.REGISTER]
    for dim in range(rank):  # each dimension has a digit of registers: reductions and sweeps run over them
        if all(each.dim != dim for each in registers):
            low = prod(each.length for each in registers if each.dim > dim)
            registers.append(Digit(dim=dim, length=1, stride=1, source=Source.REGISTER, source_stride=low))
    threads_digits = [each for each in found if each.source is not Source.REGISTER]
    places: dict[Digit, tuple[int, int]] = {}
    hs, digits_of_dims = [], list[list[Digit]]()
    for dim in range(rank):
        own = [each for each in (*threads_digits, *registers) if each.dim == dim]
        own.sort(key=lambda each: (each.stride, each.length), reverse=True)
        below = 1
        for each in reversed(own):
            if each.stride != below and each.length > 1:
                return None
            below *= each.length
        places |= {each: (dim + 1, position) for position, each in enumerate(own)}
        hs.append(tuple(each.length for each in own))
        digits_of_dims.append(own)
    rs: list[int] = []
    ps = []
    sources = [(Source.WARP, threads // WAVE)] * (threads > WAVE) + [(Source.LANE, WAVE)]
    for source, total in sources:
        listed = _of_source([each for each in threads_digits if each.source is source], total, places, rs)
        if listed is None:
            return None
        ps.append(listed)
    registers.sort(key=lambda each: (each.source_stride * each.length, each.source_stride, -each.dim), reverse=True)
    total, below, counted = prod(each.length for each in registers), 1, dict[Digit, Digit]()
    for each in reversed(registers):
        counted[each] = replace(each, source_stride=below)
        below *= each.length
    sums = tuple(in_sum([counted.get(each, each) for each in own], threads, total) for own in digits_of_dims)
    return Encoding(tuple(rs), tuple(hs), tuple(ps), tuple(places[each] for each in registers), sums)


def _of_source(
    digits: list[Digit], total: int, places: dict[Digit, tuple[int, int]], rs: list[int]
) -> tuple[tuple[int, int], ...] | None:
    """The digits of a number below `total`, the most significant first; those that no element has join `rs`."""
    listed, left = [], total
    for digit in sorted(digits, key=lambda each: each.source_stride, reverse=True):
        above, rest = divmod(left, digit.source_stride * digit.length)
        if rest or above == 0:
            return None
        if above > 1:
            listed.append((0, len(rs)))
            rs.append(above)
        listed.append(places[digit])
        left = digit.source_stride
    if left > 1:
        listed.append((0, len(rs)))
        rs.append(left)
    return tuple(listed)


def encoding_of(layout: FragmentLayout) -> Encoding | None:
    """The encoding that gives each element the thread and register that the layout gives it; None where none does."""
    digits = digits_of(layout)
    return None if digits is None else encode(digits, len(layout.shape), layout.threads_of_block)


# ---- operands of warp GEMMs, and copies -----------------------------------------------------------------------------


def operand_a(layout: MfmaTile, k: int, pack: int, *, k_first: bool) -> Encoding | None:
    """A of a GEMM into an accumulator: a lane reads `pack` consecutive k; dimensions (k, m) where `k_first`."""
    of_k, of_m = (0, 1) if k_first else (1, 0)
    n, size = layout.warps.n, layout.size
    rows, groups = layout.rows // layout.warps.m, WAVE // size
    per_lane = k // groups
    digits = (
        Digit(dim=of_m, length=layout.warps.m, stride=rows, source=Source.WARP, source_stride=n),
        register(of_m, rows // size, size, per_lane),
        Digit(dim=of_m, length=size, stride=1, source=Source.LANE, source_stride=1),
        *_along_k(of_k, k, pack, size),
    )
    return encode(digits, 2, layout.threads_of_block)


def operand_b(layout: MfmaTile, k: int, pack: int, *, k_first: bool) -> Encoding | None:
    """B: line (q, lane / size, r) of instruction t is column (q, lane / size, t, r) of its group, so that a lane's
    columns of C are neighbours."""
    of_k, of_n = (0, 1) if k_first else (1, 0)
    size, run, count = layout.size, layout.run, layout.interleave
    cols, groups = layout.cols // layout.warps.n, WAVE // size
    per_lane, runs = k // groups, size // (groups * run)
    group = size * count
    digits = (
        Digit(dim=of_n, length=layout.warps.n, stride=cols, source=Source.WARP, source_stride=1),
        register(of_n, cols // group, group, per_lane * count),
        Digit(dim=of_n, length=runs, stride=groups * run * count, source=Source.LANE, source_stride=groups * run),
        Digit(dim=of_n, length=groups, stride=run * count, source=Source.LANE, source_stride=run),
        register(of_n, count, run, per_lane),
        Digit(dim=of_n, length=run, stride=1, source=Source.LANE, source_stride=1),
        *_along_k(of_k, k, pack, size),
    )
    return encode(digits, 2, layout.threads_of_block)


def _along_k(dim: int, k: int, pack: int, size: int) -> Iterator[Digit]:
    groups = WAVE // size
    yield register(dim, k // (groups * pack), groups * pack, pack)
    yield Digit(dim=dim, length=groups, stride=pack, source=Source.LANE, source_stride=size)
    yield register(dim, pack, 1, 1)


def copy_of_rows(extents: tuple[int, ...], vector: int, threads: int) -> Encoding | None:
    """A copy whose threads take `vector` neighbours of a row each, row after row; None where vectors do not divide it.

    Of a tile with fewer vectors than threads, several threads hold copies.
    """
    *outer, columns = extents
    if columns % vector:
        return None
    grid, left = [1] * len(extents), threads
    for dim in reversed(range(len(extents))):
        grid[dim] = gcd(columns // vector if dim == len(outer) else extents[dim], left)
        left //= grid[dim]
    return encoding_of(Blocked(extents, tuple(grid), vector, threads))


class Transposing(Record, frozen=True):
    """A copy that loads vectors of a row, and stores vectors of a column."""

    loaded: Encoding
    stored: Encoding


_PIECES = ((4, 8), (8, 8), (8, 4), (4, 4), (4, 2), (2, 4), (2, 2), (4, 1), (2, 1))


def transposing_copy(k: int, n: int, count: int, run: int, element: int, threads: int) -> Transposing | None:
    """The copy of a (k, n) tile of `element` bytes that is stored by columns; `count` and `run` as in operand_b.

    Lanes take pieces along K first, then the neighbouring run of columns: their stores then have no bank conflicts.
    """
    for pieces_k, pieces_n in _PIECES:
        if k % pieces_k or n % pieces_n or pieces_n * element > 16 or pieces_k * element > 16:
            continue
        found = _transposing(k, n, count * run, (pieces_k, pieces_n), threads)
        if found is not None:
            return found
    return None


def _transposing(k: int, n: int, runs: int, pieces: tuple[int, int], threads: int) -> Transposing | None:
    (of_k, of_n), along_k = pieces, k // pieces[0]
    if WAVE % along_k or (along_k * (n // of_n)) % threads or threads % WAVE:
        return None
    left = {Source.LANE: WAVE // along_k, Source.WARP: threads // WAVE}
    sources = {Source.LANE: along_k, Source.WARP: 1}
    inner = max(1, runs // of_n)  # pieces of one lane's columns of C
    outer = n // (of_n * inner)
    pair = 2 if outer % 2 == 0 else 1
    digits = [
        Digit(dim=0, length=along_k, stride=of_k, source=Source.LANE, source_stride=1),
    ]
    repeats = []
    for length, stride in ((pair, of_n * inner), (inner, of_n), (outer // pair, of_n * inner * pair)):
        for source in (Source.LANE, Source.WARP):
            part = gcd(length, left[source])
            digits.append(Digit(dim=1, length=part, stride=stride, source=source, source_stride=sources[source]))
            left[source] //= part
            sources[source] *= part
            length, stride = length // part, stride * part
        repeats.append((length, stride))
    if any(each > 1 for each in left.values()):
        return None
    size = of_k * of_n
    for length, stride in repeats:
        digits.append(register(1, length, stride, size))
        size *= length
    encodings = []
    for stride_k, stride_n in ((of_n, 1), (1, of_k)):
        own = (register(0, of_k, 1, stride_k), register(1, of_n, 1, stride_n))
        encodings.append(encode((*digits, *own), 2, threads))
    loaded, stored = encodings
    return None if loaded is None or stored is None else Transposing(loaded, stored)
