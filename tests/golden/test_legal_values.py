"""Which values of tile parameters a source's head calls legal: the rules take these, and reject others as it states."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from tests.golden.cases import Golden, about_values
from tests.golden.source_text import Values, value
from tests.golden.test_settings import CASES, launches_of, number, stated
from tile2cu.core.errors import Tile2CuError
from tile2cu.emitter.settings import Design

PART = re.compile(
    r"(?P<k>.+) in multiples of (?P<step>\d+) \(else T2C-S002\)"
    r"|(?P<tiles>.+) in equal parts for all (?:warps|waves), each a multiple of (?P<rows>\d+) x (?P<columns>\d+) "
    r"\(else T2C-L010(?:; wgmma .*)?\)"
    r"|(?P<threads>\w+)(?: in multiples of (?P<warp>\d+),|, rounded up to a multiple of \d+,)? at most "
    r"(?P<most>[\d,]+) \(else T2C-L021\)"
    r"|(?P<stages>\w+) from 0(?:, fewer of which are used where more do not fit or do not help|: 0 loads each "
    r"tile where it is used, 1 and 2 keep it in LDS while the next one loads to registers, 3 and more keep a second "
    r"one there, if it fits)"
    r"|(?P<asserted>.+) \(else T2C-F019\)"
)
FREE = re.compile(r"\. ([\w, ]+) sizes? no tile: only the file's expressions and assertions limit (?:it|them)\.")
SMALLER = re.compile(r"A GEMM with a side below those of ([\d x,and]+) is exempt: it runs on FMAs\.")
FURTHER = {"T2C-L020", "T2C-S007"}  # shared memory, and boxes of explicit TMA copies


@dataclass(frozen=True)
class Legal:
    """What a head states: parts of the sentence, and the smallest shapes of GEMMs on tensor cores."""

    parts: list[dict[str, str | None]]
    smallest: list[tuple[int, ...]]

    @classmethod
    def of(cls, text: str) -> "Legal | None":
        about = " ".join(" ".join(about_values(text)).split())
        found = re.search(r"Legal values: (.*?)\. (?:A GEMM|Tiles|[\w, ]+ sizes? no tile|The command)", about)
        if found is None:
            return None
        parts = [PART.fullmatch(part) for part in re.split(r"; (?!wgmma)", found[1])]
        assert all(parts), found[1]
        smaller = SMALLER.search(about)
        shapes = re.split(r", | and ", smaller[1]) if smaller else []
        return cls(
            [part.groupdict() for part in parts if part], [tuple(map(int, each.split(" x "))) for each in shapes]
        )

    def broken(self, values: Values, warp: int) -> set[str]:
        """The codes of the errors that values give, by those that the sentence has."""
        return {code for part in self.parts for code in broken(part, values, warp)}

    def on_fma(self, values: Values) -> bool:
        """Whether an extent is smaller than a tensor core's, so that the other errors are those of FMAs or none."""
        sides = [(tile, step) for part in self.parts for tile, step in sides_of(part)]
        return any(value(extent, values) < least for extent, least in sides)


def sides_of(part: dict[str, str | None]) -> Iterator[tuple[str, int]]:
    """The extents in a part of the sentence, each with what it is at least on tensor cores."""
    for tile in listed(part["tiles"] or ""):
        yield from zip(tile.split(" x "), (int(part["rows"] or 0), int(part["columns"] or 0)), strict=False)
    yield from ((extent, int(part["step"] or 0)) for extent in listed(part["k"] or ""))


def broken(part: dict[str, str | None], values: Values, warp: int) -> Iterator[str]:
    """The code of a part's error, where values give it."""
    if tiles := part["tiles"]:
        warps = -(-int(value("threads", values)) // warp)
        for m, n in (tile.split(" x ") for tile in listed(tiles)):
            steps = int(part["rows"] or 0), int(part["columns"] or 0)
            if not shared(int(value(m, values)), int(value(n, values)), warps, *steps):
                yield "T2C-L010"
    elif part["k"]:
        if any(value(extent, values) % int(part["step"] or 0) for extent in listed(part["k"])):
            yield "T2C-S002"
    elif name := part["threads"]:
        if value(name, values) % int(part["warp"] or 1) or value(name, values) > number(part["most"] or ""):
            yield "T2C-L021"
    elif part["asserted"] and not value(part["asserted"], values):
        yield "T2C-F019"


def listed(text: str) -> list[str]:
    return re.split(r", | and ", text) if text else []


def shared(m: int, n: int, warps: int, rows: int, columns: int) -> bool:
    """Whether so many warps partition m x n in equal parts, each a multiple of rows x columns."""
    along_m = (each for each in range(1, warps + 1) if warps % each == 0)
    return any(m % (rows * each) == 0 and n % (columns * (warps // each)) == 0 for each in along_m)


def constants_of(text: str) -> dict[str, int]:
    """The integers of a source's sizes, the first of each name."""
    found = re.findall(r"\b(\w+) = (\d+)[,;]", " ".join(re.findall(r"^constexpr int .*", text, re.M)))
    return {name: int(number_) for name, number_ in reversed(found)}


def others(own: int, random: Random, count: int) -> list[int]:
    """So many values around one: some are multiples of what rules ask for, some are not."""
    near = (own // 4, own * 3 // 4, own * 3 // 2, own * 3, own + 4, own + 8, own + 16, own + 32, own - 16)
    return random.sample(sorted({each for each in near if each > 0 and each != own}), count)


@pytest.mark.sweep(every=22)
@pytest.mark.parametrize("name", CASES)
def test_values_are_rejected_where_the_head_says_so(name: str, request: pytest.FixtureRequest) -> None:
    golden, path = CASES[name]
    text = path.read_text(encoding="utf-8")
    legal, random = Legal.of(text), Random(name)
    rows = stated(text)
    # The number of threads may follow another parameter: so many for each unit of it.
    found = [(row, re.search(r"([\d,]+) threads", row.gives)) for row in rows]
    following = {row.name: Fraction(number(threads[1]), row.other) for row, threads in found if threads}
    count = 3 if request.config.getoption("--nightly") else 1
    for parameter, own in dict.fromkeys((row.name, row.value) for row in rows):
        for other in others(own, random, count):
            threads = {"threads": int(following[parameter] * other)} if parameter in following else {}
            check(golden, path, legal, parameter, other, threads)


def check(golden: Golden, path: Path, legal: Legal | None, parameter: str, other: int, threads: dict[str, int]) -> None:
    """A value is rejected with a code that the head states for it, or for the threads that follow, or taken."""
    constants = constants_of(path.read_text(encoding="utf-8"))
    values = Values({**constants, **threads, parameter: other}, {}, Random(0))
    expected = legal.broken(values, 64 if path.suffix == ".hip" else 32) if legal is not None else set[str]()
    on_fma = legal is not None and legal.on_fma(values)
    try:
        launches_of(golden, path, **{parameter: other})
    except Tile2CuError as error:
        # Threads that are no whole warps may be an error of a GEMM first; an assertion may have no expression.
        others_ = {"T2C-L010"} if on_fma or "T2C-L021" in expected else set[str]()
        asserted = error.message.startswith("the assertion fails")
        assert error.code in expected | others_ | FURTHER or asserted, (parameter, other)
    else:
        assert not expected or on_fma, (parameter, other, expected)


@pytest.mark.sweep(every=22)
@pytest.mark.parametrize("name", CASES)
def test_no_tile_depends_on_other_parameters(name: str) -> None:
    golden, path = CASES[name]
    text = path.read_text(encoding="utf-8")
    found = FREE.search(" ".join(" ".join(about_values(text)).split()))
    own, constants = Design.of(launches_of(golden, path)), constants_of(text)
    for parameter in listed(found[1]) if found else []:
        if parameter not in constants:
            continue
        try:
            other = Design.of(launches_of(golden, path, **{parameter: constants[parameter] + 1}))
        except Tile2CuError as error:
            assert error.code == "T2C-F019", (parameter, error.code)
        else:
            assert (other.shared, other.registers, other.stages) == (own.shared, own.registers, own.stages), parameter


def test_heads_state_legal_values() -> None:
    text = CASES["cuda/sm_90a/gemm_hybrid.cu"][1].read_text(encoding="utf-8")
    legal = Legal.of(text)
    assert legal is not None and legal.smallest == [(16, 8, 16)]
    given = {"block_M": 256, "block_N": 192, "block_K": 64, "threads": 256, "strip": 8}
    for changed, codes in (
        ({}, set[str]()),
        ({"block_M": 120}, {"T2C-L010"}),
        ({"block_K": 24}, {"T2C-S002"}),
        ({"threads": 100}, {"T2C-L021"}),
        ({"strip": 3}, {"T2C-F019"}),
        ({"block_N": 4}, {"T2C-L010"}),
    ):
        values = Values({**given, **changed}, {}, Random(0))
        assert legal.broken(values, 32) == codes and legal.on_fma(values) == ("block_N" in changed)


@pytest.mark.sweep(every=22)
@pytest.mark.parametrize("name", CASES)
def test_the_least_values_that_heads_name_are_taken(name: str) -> None:
    golden, path = CASES[name]
    about = " ".join(" ".join(about_values(path.read_text(encoding="utf-8"))).split())
    for parameters, least in re.findall(r"(?:Legal values:|;) (\w+(?:(?:, | and )\w+)*) from (\d+)", about):
        for parameter in listed(parameters):
            launches_of(golden, path, **{parameter: int(least)})
