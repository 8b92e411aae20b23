"""Laws of layouts of random shapes: what the rules compute of a layout is what its C++ type does.

Each element is held by exactly as many threads as the rules say, stored by one of them, and found again in the register
that the type names; a slice holds the rows or columns of its tile, wherever they are.
"""

from __future__ import annotations

import collections
import itertools
import json
import subprocess
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.elements import element
from tile2cu.core.layout import Blocked, FragmentLayout, MmaAccumulator, MmaOperandA, Warps, WgmmaAccumulator, slice_of
from tile2cu.core.program import Launch
from tile2cu.core.span import Span
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.names import Names
from tile2cu.styles.tl.layouts import Layouts

# Each change: the layouts of test_elements.py and test_layouts_in_words.py.
pytestmark = [pytest.mark.needs("g++"), pytest.mark.nightly]
KERNELS = Path(__file__).parent / "kernels"
PRINTER = (KERNELS / "layouts.cpp").read_text(encoding="utf-8").partition("int main() {")[0]
POWERS = st.sampled_from((1, 2, 4, 8))
EXTENTS = st.integers(1, 40)


@st.composite
def accumulators(draw: Any) -> FragmentLayout:
    warps = Warps(draw(POWERS), draw(st.sampled_from((1, 2, 3, 4))))
    return MmaAccumulator(16 * warps.m * draw(st.integers(1, 3)), 8 * warps.n * draw(st.integers(1, 5)), warps)


@st.composite
def operands(draw: Any) -> FragmentLayout:
    warps = Warps(draw(POWERS), draw(st.sampled_from((2, 3, 4))))
    return MmaOperandA(16 * warps.m * draw(st.integers(1, 3)), 16 * draw(st.integers(1, 4)), warps)


@st.composite
def wgmma_accumulators(draw: Any) -> FragmentLayout:
    groups = draw(st.sampled_from((1, 2)))
    return WgmmaAccumulator(64 * groups * draw(st.sampled_from((1, 2))), 8 * draw(st.integers(1, 16)), groups)


@st.composite
def blocked(draw: Any) -> FragmentLayout:
    """Threads in a grid of powers of two, a multiple of the block's: the others hold copies."""
    threads = tuple(draw(st.lists(POWERS, min_size=1, max_size=3)))
    vector = draw(st.sampled_from((1, 2, 4)))
    extents = (*(draw(EXTENTS) for _ in threads[1:]), vector * draw(EXTENTS))
    copies = draw(st.sampled_from((1, 2)))
    return Blocked(extents, threads, vector, copies * prod(threads))


# Prints extents, which are numbers here.
NUMBERS = Printer(
    Names(()), Bounds(Launch(grid=(), blocks=(), threads=128, tiles=(), body=(), span=Span("k.py", 1, 1, 1)))
)
LAYOUTS = st.lists(st.one_of(accumulators(), operands(), wgmma_accumulators(), blocked()), min_size=12, max_size=12)


def cpp(layout: FragmentLayout) -> str:
    """The type as the emitter writes it."""
    writer = object.__new__(Layouts)
    writer.aliases = []
    writer.threads = 0
    writer.printer = NUMBERS
    return writer._named(layout)


def printed(layouts: list[FragmentLayout], folder: Path, headers: Path) -> list[Any]:
    """Who holds what, as the C++ types say."""
    lines = (f'  print<{cpp(layout)}>("{n}", {layout.threads_of_block});' for n, layout in enumerate(layouts))
    (folder / "random.cpp").write_text(
        PRINTER + "int main() {\n" + "\n".join(lines) + '\n  std::printf("}\\n");\n}\n', encoding="utf-8"
    )
    command = ["g++", "-std=c++17", "-O0", "-Wno-psabi", f"-I{headers}", f"-I{KERNELS}", "random.cpp", "-o", "random"]
    subprocess.run(command, cwd=folder, check=True)
    found = json.loads(subprocess.run([str(folder / "random")], check=True, capture_output=True, text=True).stdout)
    return [found[str(n)] for n in range(len(layouts))]


def check(layout: FragmentLayout, threads: Any) -> None:
    """Every element is held by `replicas` threads, stored by one, and takes the registers that the rules count."""
    held: collections.Counter[tuple[int, ...]] = collections.Counter()
    stored: collections.Counter[tuple[int, ...]] = collections.Counter()
    for thread, (replica, places) in enumerate(zip(threads["replica"], threads["places"], strict=True)):
        assert len(places) == layout.registers
        assert [None if place is None else tuple(place) for place in places] == [
            element(layout, thread, register) for register in range(layout.registers)
        ]
        own = [tuple(place) for place in places if place is not None]
        assert len(set(own)) == len(own), "an element in two registers of a thread"
        held.update(own)
        stored.update(own if replica == 0 else ())
    elements = set(itertools.product(*map(range, layout.shape)))
    assert stored == dict.fromkeys(elements, 1)
    assert held == dict.fromkeys(elements, layout.replicas)


def check_slice(whole: Any, slice: Any, registers: Any, dim: int) -> None:
    """In each thread, the slice's value for an element is that of the element's row (or column)."""
    for places, values in zip(whole["places"], slice["places"], strict=True):
        for register, place in zip(registers, places, strict=True):
            assert place is None or values[register] == [place[dim]]


@settings(max_examples=2, phases=(Phase.generate,), suppress_health_check=list(HealthCheck), derandomize=True)
@given(LAYOUTS)
def test_types_hold_what_the_rules_say(
    headers: Path, tmp_path_factory: pytest.TempPathFactory, layouts: list[FragmentLayout]
) -> None:
    for layout, said in zip(layouts, printed(layouts, tmp_path_factory.mktemp("random"), headers), strict=True):
        check(layout, said)
        for dim, name in enumerate(("rows", "cols") if len(layout.shape) == 2 else ()):
            part = slice_of(layout, (dim,))
            if part is not None:  # None where no rule asks for this slice
                check(part, said[name])
            check_slice(said, said[name], said[f"{name[:-1]}_registers"], dim)
