"""Layouts as numbers with digits: each coordinate is a number whose digits come from the warp, the lane, or a register.

In words a coordinate is a sum: row = 32 wave + 16 (value / 16) + lane % 16.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from math import prod

from msgspec.structs import replace

from tile2cu.core.layout import Blocked, FragmentLayout, Slice
from tile2cu.core.mfma_layout import WAVE, MfmaTile
from tile2cu.core.record import Record
from tile2cu.styles.base.comments import bracketed


class Source(Enum):
    """What a digit is a part of."""

    WARP = "wave"
    LANE = "lane"
    REGISTER = "value"


class Digit(Record, frozen=True, kw_only=True):
    """`length` values of dimension `dim` at distances of `stride`: the digit of its source at distance `source_stride`.

    The order of registers is that of their source strides.
    """

    dim: int
    length: int
    stride: int
    source: Source
    source_stride: int


def word(digit: Digit, threads: int, registers: int) -> str:
    """A digit in words: of the wave in a workgroup of so many threads, of the lane, or of one of a lane's values."""
    total = {Source.WARP: threads // WAVE, Source.LANE: WAVE, Source.REGISTER: registers}[digit.source]
    quotient = f" / {digit.source_stride}" if digit.source_stride > 1 else ""
    remainder = f" % {digit.length}" if digit.source_stride * digit.length < total else ""
    return f"{digit.source.value}{quotient}{remainder}"


def digits_of(layout: FragmentLayout) -> tuple[Digit, ...] | None:
    """The digits of a layout's elements; None where they are not all digits."""
    match layout:
        case MfmaTile():
            return tuple(_of_mfma(layout))
        case Blocked():
            found = tuple(_of_blocked(layout))
            return None if None in found else tuple(each for each in found if each is not None)
        case Slice():
            return _of_slice(layout)
        case _:
            return None


def _of_mfma(layout: MfmaTile) -> Iterator[Digit]:
    """Of core/mfma_layout.py's tiles: rows are lanes, runs of columns registers."""
    n, size, waves = layout.warps.n, layout.size, layout.waves_of_columns
    rows, cols = layout.rows // layout.warps.m, layout.cols // waves
    run, groups = layout.run * layout.interleave, WAVE // size
    row_registers = cols // groups
    yield Digit(dim=0, length=layout.warps.m, stride=rows, source=Source.WARP, source_stride=n)
    yield register(0, rows // size, size, row_registers)
    yield Digit(dim=0, length=size, stride=1, source=Source.LANE, source_stride=1)
    yield Digit(dim=1, length=waves, stride=cols, source=Source.WARP, source_stride=1)
    yield register(1, cols // (run * groups), run * groups, run)
    yield Digit(dim=1, length=groups, stride=run, source=Source.LANE, source_stride=size)
    yield register(1, run, 1, 1)


def register(dim: int, length: int, stride: int, source_stride: int) -> Digit:
    """A digit of the number of a thread's register."""
    return Digit(dim=dim, length=length, stride=stride, source=Source.REGISTER, source_stride=source_stride)


def _of_blocked(layout: Blocked) -> Iterator[Digit | None]:
    """Of a grid of threads: a thread's number is warp and lane, and a digit of it may be a part of both."""
    last, below = len(layout.extents) - 1, 1
    for dim in reversed(range(last + 1)):
        run = layout.vector if dim == last else layout.rows if dim == 0 else 1
        threads = layout.threads[dim]
        repeats = -(-layout.extents[dim] // (threads * run))
        yield register(dim, run, 1, below)
        yield from _of_threads(dim, threads, run, prod(layout.threads[dim + 1 :]))
        yield register(dim, repeats, run * threads, below * run)
        below *= run * repeats


def _of_threads(dim: int, length: int, stride: int, of_thread: int) -> Iterator[Digit | None]:
    """A digit of the thread's number as one of the lane, of the warp, or one of each."""
    lanes = max(1, WAVE // of_thread) if WAVE % of_thread == 0 else 0
    if lanes == 0 and of_thread % WAVE:
        yield None
        return
    if length > 1 and lanes > 1:
        in_lane = min(length, lanes)
        if lanes % in_lane or length % in_lane:
            yield None
            return
        yield Digit(dim=dim, length=in_lane, stride=stride, source=Source.LANE, source_stride=of_thread)
        length, stride, of_thread = length // in_lane, stride * in_lane, of_thread * in_lane
    yield (
        Digit(dim=dim, length=length, stride=stride, source=Source.WARP, source_stride=max(1, of_thread // WAVE))
        if length > 1
        else register(dim, 1, 1, 1)
    )


def _of_slice(layout: Slice) -> tuple[Digit, ...] | None:
    """Those of the kept dimensions; their registers are numbered anew."""
    digits = digits_of(layout.of)
    if digits is None:
        return None
    dims = {dim: number for number, dim in enumerate(layout.kept)}
    kept = [replace(each, dim=dims[each.dim]) for each in digits if each.dim in dims]
    below, found = 1, [each for each in kept if each.source is not Source.REGISTER]
    registers = (each for each in kept if each.source is Source.REGISTER)
    for each in sorted(registers, key=lambda each: (each.source_stride, each.stride)):
        found.append(replace(each, source_stride=below))
        below *= each.length
    return tuple(found)


def coordinates(layout: FragmentLayout, over: Sequence[str] = "ij") -> str:
    """Each coordinate by wave, lane and value; empty where they are not all digits."""
    digits = digits_of(layout)
    if digits is None:
        return ""
    parts = []
    for dim, name in zip(range(len(layout.shape)), over, strict=False):
        own = sorted((each for each in digits if each.dim == dim), key=lambda each: -each.stride)
        parts.append(f"{name} = {in_sum(own, layout.threads_of_block, layout.registers)}")
    return ", ".join(parts)


def in_sum(digits: Iterable[Digit], threads: int, registers: int) -> str:
    """A coordinate by its digits, the most significant first; those that are one of their source are one."""
    joined: list[Digit] = []
    for each in digits:
        above = joined[-1] if joined else None
        if each.length == 1:
            continue
        if (
            above is not None
            and above.source is each.source
            and above.stride == each.stride * each.length
            and above.source_stride == each.source_stride * each.length
        ):
            joined[-1] = replace(each, length=above.length * each.length)
        else:
            joined.append(each)
    return " + ".join(_term(each.stride, word(each, threads, registers)) for each in joined) or "0"


def _term(factor: int, text: str) -> str:
    """A factor times a term, as comments write it: 4 wave, or 4 (lane / 16)."""
    return text if factor == 1 else f"{factor} {bracketed(text)}"
