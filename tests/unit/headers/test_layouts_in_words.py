"""What emitted sources say of their layouts, against the C++ types that they name, thread by thread."""

from __future__ import annotations

import functools
import itertools
import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.golden.source_text import KernelText, Source
from tests.golden.test_claims import ROOT, TL

pytestmark = pytest.mark.needs("g++")
KERNELS = Path(__file__).parent / "kernels"
_MFMA = ROOT / "headers/tl/common/cdna/mfma_accumulator.h"
_ABOUT = re.compile(r"((?:^// .*\n)+)(using (\w+) = [^;]+;)", re.M)
_CLAIM = re.compile(r"\(T(\d+) threads, V(\d+) values each\) -> \(([\d, ]+)\)(.*?)\s+\[")


@dataclass(frozen=True)
class Claimed:
    """A layout of a kernel: its C++ type, and what is said of it."""

    source: str
    name: str
    type: str
    kernel: KernelText
    aliases: str
    threads: int
    values: int
    shape: tuple[int, ...]
    words: str

    @property
    def constants(self) -> str:
        """The constants that the type and those before it name, as C++."""
        named = re.findall(r"\w+", self.aliases)
        return "".join(
            f"constexpr int {name} = {value};\n" for name, value in self.kernel.constants.items() if name in named
        )


@dataclass(frozen=True)
class Held:
    """The coordinates that each thread holds, in the order of its registers, None where it has one too many."""

    threads: list[list[tuple[int, ...] | None]]
    wave: int

    def of(self, first: int, count: int) -> set[tuple[int, ...]]:
        """What some threads hold."""
        return {place for each in self.threads[first : first + count] for place in each if place is not None}

    def rows(self, group: int, size: int) -> set[int]:
        """The rows of group number `group` of so many threads."""
        return {place[0] for place in self.of(group * size, size)}

    def columns(self, group: int, size: int) -> set[int]:
        """The columns of a group."""
        return {place[1] for place in self.of(group * size, size)}

    @property
    def waves(self) -> range:
        return range(len(self.threads) // self.wave)


def claimed(path: Path) -> Iterator[Claimed]:
    """The layouts of a source of which something is said."""
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        aliases = ""
        for about, declared, name in _ABOUT.findall(kernel.head):
            aliases += declared + "\n"
            words = " ".join(line.removeprefix("// ") for line in about.splitlines()) + "  ["
            found = _CLAIM.search(words)
            if found is None:
                assert "the same as" in words, words
                continue
            shape = tuple(map(int, found[3].split(", ")))
            threads, values = int(found[1]), int(found[2])
            yield Claimed(str(path), name, declared, kernel, aliases, threads, values, shape, found[4])


def program(layouts: list[Claimed], wave: int) -> str:
    """A program that prints who holds what."""
    lines = ["#define TL_WARP_SIZE 64"] * (wave == 64) + ['#include "print_layouts.h"']
    for number, each in enumerate(layouts):
        lines.append(f"namespace layout_{number} {{\n{each.constants}{each.aliases}}}")
    prints = (f'  print<layout_{n}::{each.name}>("{n}", {each.threads});' for n, each in enumerate(layouts))
    return "\n".join([*lines, "int main() {", *prints, '  std::printf("}\\n");', "}\n"])


@pytest.mark.parametrize("wave", [32, 64])
def test_layouts_are_what_sources_say(wave: int, tmp_path: Path, headers: Path) -> None:
    layouts = [each for path in TL if (path.suffix == ".hip") == (wave == 64) for each in claimed(path)]
    layouts = list({(each.type, each.words, each.constants): each for each in layouts}.values())
    (tmp_path / "said.cpp").write_text(program(layouts, wave), encoding="utf-8")
    command = ["g++", "-std=c++17", "-O0", "-w", f"-I{headers}", f"-I{KERNELS}", "said.cpp", "-o", "said"]
    subprocess.run(command, cwd=tmp_path, check=True)
    found: Any = json.loads(subprocess.run([tmp_path / "said"], check=True, capture_output=True, text=True).stdout)
    wrong = {}
    for number, each in enumerate(layouts):
        threads = [[None if place is None else tuple(place) for place in row] for row in found[str(number)]["places"]]
        wrong[f"{each.source}: {each.name}"] = list(faults(each, Held(threads, wave)))
    assert not {name: parts for name, parts in wrong.items() if parts}


def faults(said: Claimed, held: Held) -> Iterator[str]:
    """What is not as it is said."""
    if {len(each) for each in held.threads} != {said.values}:
        yield f"V{said.values}"
    holders = Counter(place for each in held.threads for place in set(each) if place is not None)
    if set(holders) != set(itertools.product(*map(range, said.shape))):
        yield f"{said.shape}"
    copies = re.search(r"; (\d+) threads (of a warpgroup )?hold the same value", said.words)
    groups = len(held.threads) // 128 if "each warpgroup holds" in said.words else 1
    assert copies is None or (groups > 1) == bool(copies[2]), said.words
    alike = len(held.threads) if "; every thread holds" in said.words else int(copies[1]) if copies else 1
    if set(holders.values()) != {groups * alike}:
        yield f"held by {set(holders.values())} threads"
    for part in filter(None, said.words.split("; ")):
        if "hold the same value" not in part and not any(check(part, held) for check in CHECKS):
            yield part


def _rows_of_warps(part: str, held: Held) -> bool:
    found = re.fullmatch(
        r"(?:warp|wave) w holds rows (\d+) w to (\d+) w \+ (\d+)(?:, a lane (\d+) neighbouring .*)?", part
    )
    if not found:
        return False
    first, step, last = map(int, found.groups()[:3])
    rows = all(held.rows(w, held.wave) == set(range(first * w, step * w + last + 1)) for w in held.waves)
    return rows and (found[4] is None or runs(held) == {int(found[4])})


def _parts_of_warps(part: str, held: Held) -> bool:
    pattern = (
        r"wa(?:rp|ve) w holds (?:(\d+) rows from (\d+) \(w / (\d+)\)|all (\d+) rows) "
        r"and (\d+) columns from (\d+) \(w % (\d+)\)(?:, a lane .*)?"
    )
    found = re.fullmatch(pattern, part)
    if not found:
        return False
    m, row, over = (int(found[4]), 0, 1) if found[4] else map(int, found.groups()[:3])
    n, col, of = map(int, found.groups()[4:])
    return all(
        held.rows(w, held.wave) == set(range(row * (w // over), row * (w // over) + m))
        and held.columns(w, held.wave) == set(range(col * (w % of), col * (w % of) + n))
        for w in held.waves
    )


def _in_all(part: str, held: Held) -> bool:
    """Each thread has all elements, in as many values."""
    found = re.fullmatch(r"every thread holds (?:all (\d+) values|the value)", part)
    return bool(found) and all(len(set(each)) == int(found[1] or 1) for each in held.threads)


_TILE = r"(?:(?P<held>\d+) (?:\((?P<tiles>\d+) m \+ n\)|(?P<one>[mn])) \+ )?"
_WHERE = (
    r"(?:, in the wave's (?:(?P<rows>\d+) rows from (?P=rows) m)?(?: and )?"
    r"(?:(?P<columns>\d+) columns from (?P=columns) n)?)?"
)


def tile_of(found: re.Match[str], value: int) -> tuple[int, int]:
    """The numbers m and n of the rows and columns of a value."""
    if not found["held"]:
        return 0, 0
    number = value // int(found["held"])
    return divmod(number, int(found["tiles"])) if found["tiles"] else (number, 0)[:: 1 if found["one"] == "m" else -1]


def _tiles_of_waves(found: re.Match[str], held: Held) -> bool:
    """Each value is in the rows and columns of its wave that m and n are said to have."""
    extents = (int(found["rows"] or 0), int(found["columns"] or 0))
    per_tile = 4 * int(found["count"])
    if per_tile != int(found["held"] or len(held.threads[0])):
        return False
    for w in held.waves:
        first = (min(held.rows(w, held.wave)), min(held.columns(w, held.wave)))
        for thread in held.threads[w * held.wave : (w + 1) * held.wave]:
            for value, place in enumerate(thread):
                assert place is not None
                for at, start, extent, number in zip(place, first, extents, tile_of(found, value), strict=True):
                    if (at - start) // extent != number if extent else number:
                        return False
    return True


def _interleaved(part: str, held: Held) -> bool:
    """The register of an MFMA's result as `register_of` has it, in a run of neighbouring columns of a lane."""
    found = re.fullmatch(
        rf"value {_TILE}(?P<factor>\d+) r \+ t(?: of [\w, ]+)? is register r of MFMA t, of (?P<count>\d+) that "
        rf"interleave their columns{_WHERE}",
        part,
    )
    if not found or not _tiles_of_waves(found, held):
        return False
    factor, count = int(found["factor"]), int(found["count"])
    formula = re.search(r"const int in_group = (.*?);", _MFMA.read_text(encoding="utf-8"))
    assert formula is not None
    python = formula[1].replace("Shape::", "").replace("Interleave::", "").replace("/", "//")
    fixed = {"run": 4, "vector": 4 * count, "count": count}
    registers = ({"item": r, "t": t, **fixed} for r in range(4) for t in range(count))
    return factor == count and all(eval(python, {}, each) == factor * each["item"] + each["t"] for each in registers)


def _warpgroups(part: str, held: Held) -> bool:
    found = re.fullmatch(
        r"(?:warpgroup g|each warpgroup) holds (.*), its warp w rows 16 w to 16 w \+ 15 of each 64 rows", part
    )
    if not found:
        return False
    groups = range(len(held.threads) // 128)
    rows = re.search(r"rows (\d+) g to \1 g \+ (\d+)", found[1])
    columns = re.search(r"columns (\d+) g to \1 g \+ (\d+)", found[1])
    everything = held.of(0, len(held.threads))
    for g in groups:
        for dim, (of, said) in enumerate(((held.rows, rows), (held.columns, columns))):
            own = of(g, 128)
            all_ = {place[dim] for place in everything}
            if own != (set(range(int(said[1]) * g, int(said[1]) * g + int(said[2]) + 1)) if said else all_):
                return False
    warps = ((w, {row % 64 for row in held.rows(w, 32)}) for w in held.waves)
    return all(rows <= set(range(16 * (w % 4), 16 * (w % 4) + 16)) for w, rows in warps)


def _grid_of_threads(part: str, held: Held) -> bool:
    found = re.fullmatch(
        r"(?:(one thread)|([\d x]+) threads) with (?:(\d+) runs of )?(\d+|one) (consecutive )?elements?(?: each)?"
        r"(?:, of (\d+) neighbouring rows)?",
        part,
    )
    if not found:
        return False
    different = {tuple(each) for each in held.threads}
    count = prod(map(int, found[2].split(" x "))) if found[2] else 1
    each = 1 if found[4] == "one" else int(found[4])
    values = each * int(found[3] or 1) * int(found[6] or 1)
    held_by_each = {len(each) for each in held.threads} == {values}
    return held_by_each and len(different) <= count and all(run % (each if found[5] else 1) == 0 for run in runs(held))


def _own_values(part: str, held: Held) -> bool:
    first, second = held.threads[:128], held.threads[128:]
    return part == "each warpgroup holds values of its own" and first == second


def _formulas(part: str, held: Held) -> bool:
    """Coordinates by wave, lane and value: `i = 16 wave + lane % 16`."""
    found = re.fullmatch(r"i = ([^=]+?)(?:, j = ([^=]+))?", part)
    if found is None:
        return False
    for thread, places in enumerate(held.threads):
        names = {"wave": thread // held.wave, "lane": thread % held.wave}
        for value, place in enumerate(places):
            stated = tuple(by_formula(text, value=value, **names) for text in found.groups() if text)
            if place is not None and stated != place:
                return False
    return True


def by_formula(text: str, **names: int) -> int:
    """The value of a formula of a comment, in which `4 i` and `4 (value / 8)` are products."""
    return int(eval(_python(text), {}, names))


@functools.cache
def _python(text: str) -> CodeType:
    return compile(re.sub(r"(\d) ([a-z(])", r"\1 * \2", text.replace("/", "//")), text, "eval")


def _split(part: str, held: Held) -> bool:
    return part.startswith("the registers of a tile of")  # tests/unit/headers/test_random_layouts.py


def _tv_layout(part: str, held: Held) -> bool:
    """CuTe's layout of (thread, value): the offset in the tile, column-major."""
    found = re.fullmatch(r"TV layout (\(.*\)):(\(.*\))", part)
    if not found:
        return False
    modes = [[*zip(*map(_numbers, pair), strict=True)] for pair in zip(*map(_parts, found.groups()), strict=True)]
    places = held.of(0, len(held.threads))
    extents = [max(dim) + 1 for dim in zip(*places, strict=True)]
    strides = [prod(extents[:dim]) for dim in range(len(extents))]
    sizes = (len(held.threads), len(held.threads[0]))
    of_threads, of_values = ([_offset(mode, at) for at in range(size)] for mode, size in zip(modes, sizes, strict=True))
    return all(
        place is not None and sum(map(prod, zip(place, strides, strict=True))) == of_thread + of_value
        for each, of_thread in zip(held.threads, of_threads, strict=True)
        for place, of_value in zip(each, of_values, strict=True)
    )


def _parts(text: str) -> tuple[str, str]:
    """The threads' and the values' half of `(threads,values)`."""
    depths = list(itertools.accumulate((letter == "(") - (letter == ")") for letter in text))
    (comma,) = (at for at, letter in enumerate(text) if letter == "," and depths[at] == 1)
    return text[1:comma], text[comma + 1 : -1]


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.strip("()").split(",")]


def _offset(modes: list[tuple[int, int]], index: int) -> int:
    offset = 0
    for extent, stride in modes:
        index, at = divmod(index, extent)
        offset += at * stride
    return offset


CHECKS: tuple[Callable[[str, Held], bool], ...] = (
    _rows_of_warps, _in_all, _interleaved, _parts_of_warps, _warpgroups, _grid_of_threads, _own_values, _split,
    _tv_layout, _formulas,
)  # fmt: skip


def runs(held: Held) -> set[int]:
    """How many neighbours of a row threads hold, one after the other."""
    lengths: set[int] = set()
    for each in held.threads:
        rows: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for place in each:
            if place is not None:
                rows[place[:-1]].append(place[-1])
        for columns in rows.values():
            ordered = sorted(set(columns))
            ends = [i for i, col in enumerate(ordered, 1) if i == len(ordered) or ordered[i] != col + 1]
            lengths |= {end - start for start, end in zip([0, *ends], ends, strict=False)}
    return lengths


CK = sorted((ROOT / "emitted/ck").glob("**/*.hip"))
_BLOCK_GEMM = ROOT / "headers/tl/ck.h"
_OF_CK = re.compile(
    r"a lane (\d+) neighbouring columns of a row at a time; value (?:(\d+) (\(\d+ m \+ n\)|[mn]) \+ )?"
    r"(\d+) t \+ r(?: of [\w, ]+)? is register r of MFMA t, of (\d+) that each own runs of (\d+) of these columns"
    r".*? i = ([^=]*?),? j = ([^=]*?)\s+using"
)


def test_the_columns_of_ck_s_mfmas_are_those_that_block_gemm_places() -> None:
    """The place of element e of instruction t in C's registers, by the expression of tl::block_gemm."""
    found = re.search(r"return number<(.*?)>\{\};", _BLOCK_GEMM.read_text(encoding="utf-8").split("block_gemm(C& c")[1])
    assert found is not None
    place = re.sub(r"(?<=\W)/(?=\W)", "//", found[1])
    checked = 0
    for path in CK:
        words = re.sub(r"\n// ", " ", path.read_text(encoding="utf-8"))
        assert "that interleave their columns" not in words
        for each in _OF_CK.finditer(words):
            held, factor, count, run = map(int, each.group(1, 4, 5, 6))
            groups = int((re.search(r"\d+", each[3] or "") or ["1"])[0])
            assert each[2] is None or int(each[2]) == held
            assert (f"value / {held * groups}" in each[7]) == ("m" in (each[3] or "")), each[0]
            assert (f"value / {held}" in each[8]) == ("n" in (each[3] or "")), each[0]
            fixed = {"row": 0, "n": count, "group": 0, "count": count, "run": 4, "in_c": 4}
            places = {(t, r): eval(place, {}, {**fixed, "t": t, "e": r}) for t in range(count) for r in range(4)}
            assert held == count * run and set(places.values()) == set(range(held))
            assert all(at == factor * t + r for (t, r), at in places.items())
            assert all({places[t, r] for r in range(run)} == set(range(run * t, run * t + run)) for t in range(count))
            checked += 1
    assert checked


_OPERAND = re.compile(
    r"as operand [AB], Src[AB] of MFMA: \(T\d+ threads, V(\d+) values each\) -> \([^)]*\); "
    r"MFMA.*? takes values ([^,]*), i < (\d+), of k = (.*?\bi(?: % \d+)?),? (?=[kmn]\w* = )(.*?)\s+using"
)


def test_the_k_of_ck_s_steps_are_those_of_their_operands() -> None:
    """tl::block_gemm takes the values of a lane along K in order, so many for a step: by the formula of k."""
    checked = 0
    for path in CK:
        words = re.sub(r"\n// ", " ", path.read_text(encoding="utf-8"))
        for found in _OPERAND.finditer(words):
            formulas = dict(re.findall(r"(\w+) = (.*?)(?=,? \w+ = |$)", found[5]))
            values, of_a_step = int(found[1]), int(found[3])
            factors = {name: int(factor) for factor, name in re.findall(r"(\d+) ([ts])\b", found[2])}
            assert factors.get("s", of_a_step) == of_a_step
            along_k = factors.get("t", values)
            for value, lane in itertools.product(range(values), range(64)):
                t, (s, i) = value // along_k, divmod(value % along_k, of_a_step)
                names = {"t": t, "s": s, "i": i, "lane": lane, "value": value, "wave": 0}
                assert by_formula(found[2], **names) == value
                if "k" in formulas:  # of k_slot: tests/unit/emit/test_ck_style.py
                    assert by_formula(found[4], **names) == by_formula(formulas["k"], **names), found[0]
                    checked += 1
    assert checked
