"""The values that a source's head states for tile parameters: with them its design stays, beside them it does not.

The rules decide the kernel anew with values inside and outside of what the text states.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.golden.cases import GOLDEN, ROOT, Golden
from tile2cu.analysis.uses import statements
from tile2cu.api import resolved_kernels
from tile2cu.core.decisions import INSTRUCTION, PIPELINE, SHARED_LAYOUT, STORE_STAGING, WARPS
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Gemm, Loop
from tile2cu.emitter import Resolved, seen_by
from tile2cu.emitter.settings import register_limit
from tile2cu.plan.registers import tile_registers
from tile2cu.targets import find

ROW = re.compile(r"^//   (\w+) +([\d,]+)  (.*)$")
CASES = [(golden, name) for golden in GOLDEN for name in golden.files() if name.endswith((".cu", ".hip"))]


@dataclass(frozen=True)
class Stated:
    """A line of the head: a parameter with its value, the values that keep the design, and what it says of others."""

    name: str
    value: int
    kept: Sequence[int]
    about: str

    @property
    def inside(self) -> list[int]:
        """The first and the last of the values, and those next to the kernel's own."""
        at = list(self.kept).index(self.value)
        near = {self.kept[0], self.kept[-1], self.kept[max(at - 1, 0)], self.kept[min(at + 1, len(self.kept) - 1)]}
        return sorted(near - {self.value})

    def outside(self, step: int, most: int) -> list[int]:
        """Values between and next to those that are stated, in steps that such a parameter may have."""
        if "at least" in self.about or "may be over" in self.about:
            return []
        between = [value for value in range(step, self.kept[-1], step) if value not in self.kept]
        return sorted({*between[:1], *between[-1:], *([self.kept[-1] + step] if self.kept[-1] + step <= most else [])})


def stated(text: str) -> Iterator[Stated]:
    """The lines of a source's head about parameters, with those that continue them."""
    lines = text[text.index("// To change a tile size") :].split("//\n")[0].splitlines()
    rows: list[list[str]] = []
    for line in lines:
        if found := ROW.match(line):
            rows.append([*found.groups()])
        elif rows:
            rows[-1][2] += " " + line.removeprefix("//").strip()
    for name, value, about in rows:
        yield Stated(name, number(value), values_of(about.strip()), about)


def values_of(about: str) -> Sequence[int]:
    """The values in the words of a head."""
    words = about.split(": ")[0]
    numbers = [number(each) for each in re.findall(r"[\d,]*\d", words)]
    if words.startswith("multiples"):
        return range(numbers[0], numbers[1] + 1, numbers[0])
    if " to " in words:
        return range(numbers[0], numbers[1] + 1)
    return numbers


def number(text: str) -> int:
    return int(text.replace(",", ""))


@dataclass(frozen=True)
class Design:
    """What the head says that a value within the stated ones keeps."""

    mmas: tuple[object, ...]
    warps: tuple[object, ...]
    swizzles: tuple[int, ...]
    stages: tuple[int, ...]
    stores: int
    registers: int

    @classmethod
    def of(cls, launches: tuple[Resolved, ...]) -> "Design":
        gemms = [(each, op) for each in launches for op in statements(each.launch.body, Gemm)]
        instructions = [each.facts.get(op, INSTRUCTION) for each, op in gemms]
        loops = [(each, op) for each in launches for op in statements(each.launch.body, Loop)]
        pipelines = [each.facts.get(op, PIPELINE) for each, op in loops]
        tiles = [each.facts.get(tile, SHARED_LAYOUT) for each in launches for tile in each.launch.tiles]
        stagings = (each.facts.get(each.launch, STORE_STAGING) or () for each in launches)
        return cls(
            mmas=tuple((i.unit, i.k, i.operands, i.accumulator) for i in instructions if i is not None),
            warps=tuple(each.facts.get(op, WARPS) for each, op in gemms),
            swizzles=tuple(tile.swizzle for tile in tiles if tile is not None),
            stages=tuple(each.stages for each in pipelines if each is not None),
            stores=sum(staging.where is None for own in stagings for staging in own),
            registers=max(tile_registers(each) for each in launches),
        )


def launches_of(golden: Golden, name: str, **values: object) -> tuple[Resolved, ...]:
    (found,) = resolved_kernels(
        ROOT / "examples" / golden.example,
        kernel=Path(name).stem,
        target=seen_by(golden.style, find(golden.target)),
        bindings={**golden.bindings, **values},
    )
    return found


def lost(own: tuple[Resolved, ...], golden: Golden, name: str, parameter: str, value: int) -> str:
    """What of a kernel's design a value of a parameter does not keep; empty for nothing."""
    try:
        other = launches_of(golden, name, **{parameter: value})
    except Tile2CuError as error:
        return f"{error.code}: {error.message}"
    old, new = Design.of(own), Design.of(other)
    if old.mmas != new.mmas:
        return "MMAs"
    if new.registers > max(old.registers, *(register_limit(each) for each in own)):
        return "registers"
    if any(each.launch.threads_of == parameter for each in own):
        return ""
    if any(loop.stages_of == parameter for each in own for loop in statements(each.launch.body, Loop)):
        return "stages" if {*new.stages} - {*old.stages, value} or old.stores != new.stores else ""
    if old.warps != new.warps:
        return "warps"
    exactly = own[0].target.is_amd
    if len(old.swizzles) != len(new.swizzles) or any(
        a > b or (exactly and a != b) for a, b in zip(old.swizzles, new.swizzles, strict=True)
    ):
        return "swizzles"
    return "stages" if old.stages != new.stages else "stores" * (old.stores != new.stores)


@pytest.mark.sweep(every=6)
@pytest.mark.parametrize(("golden", "name"), CASES, ids=[name for _, name in CASES])
def test_a_parameter_has_the_values_that_the_head_states(golden: Golden, name: str) -> None:
    text = golden.files()[name] if "To change a tile size" in golden.files()[name] else ""
    own = launches_of(golden, name)
    target = own[0].target
    for each in stated(text) if text else ():
        constant = re.search(rf"\b{each.name} = (\d+)\b", text.partition("#include")[2])
        assert constant is None or int(constant[1]) == each.value
        of_threads = any(launch.launch.threads_of == each.name for launch in own)
        of_stages = any(loop.stages_of == each.name for one in own for loop in statements(one.launch.body, Loop))
        step = target.warp_size if of_threads else 1 if of_stages or not isinstance(each.kept, list) else 8
        most = target.max_threads if of_threads else 1 << 14
        broken = {value: lost(own, golden, name, each.name, value) for value in each.inside}
        assert not any(broken.values()), (each, broken)
        kept = [value for value in each.outside(step, most) if not lost(own, golden, name, each.name, value)]
        assert not kept, (each, kept)


def test_heads_state_values_where_a_kernel_has_parameters() -> None:
    without = {name for golden, name in CASES if "To change a tile size" not in golden.files()[name]}
    assert {Path(name).stem for name in without} <= {"rmsnorm", "rmsnorm_silu", "dequant_gemv"}


def test_the_words_for_values_are_read_as_they_are_written() -> None:
    assert list(values_of("64, 128 or 1,024: 128-byte swizzle of B_shared; 2,048 is over 1 byte")) == [64, 128, 1024]
    assert list(values_of("multiples of 32 up to 128")) == [32, 64, 96, 128]
    assert list(values_of("1 to 3: 4 is over 100 bytes of LDS")) == [1, 2, 3]
    assert list(values_of("128 alone: K in steps of 16")) == [128]
