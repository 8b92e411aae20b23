"""Laws of the layouts: who holds what, once, and agreement with CuTe's tables of mma's fragments."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import cute_tables
import pytest

from tests.amdgcn import mfma_tables

pytestmark = pytest.mark.needs("g++")

# The shape of each layout that kernels/layouts.cpp prints.
SHAPES = {
    "mma 16x8": (16, 8),
    "mma 16x16": (16, 16),
    "mma 128x128 2x2": (128, 128),
    "mma 64x128 4x1": (64, 128),
    "mma 96x72 2x3": (96, 72),
    "mma 32x64 1x2 of 4 warps": (32, 64),
    "operand 64x32 2x2": (64, 32),
    "blocked 1024": (1024,),
    "blocked 1000": (1000,),
    "blocked 4 of 64 threads": (4,),
    "blocked 4x1000": (4, 1000),
    "blocked 30x50": (30, 50),
    "blocked 9x40 of 20 threads of 64": (9, 40),
    "blocked 3x5x20": (3, 5, 20),
    "wgmma 64x8": (64, 8),
    "wgmma 64x16": (64, 16),
    "wgmma 64x104": (64, 104),
    "wgmma 128x32 2": (128, 32),
    "wgmma 256x16 2": (256, 16),
    "replicated 3x4": (3, 4),
}
MFMA_SHAPES = {
    "16x16": (16, 16),
    "16x64 by 4": (16, 64),
    "16x128 by 8": (16, 128),
    "double 16x32 by 2": (16, 32),
    "32x32": (32, 32),
    "32x64 by 2": (32, 64),
    "96x128 3x2 by 4": (96, 128),
    "64x96 2x1 of 4 waves by 2": (64, 96),
    "64x128 2x2 of 32 by 2": (64, 128),
    "operand 64x32 2x2": (64, 32),
}
WITH_ROWS = [name for name, shape in SHAPES.items() if len(shape) == 2 and not name.startswith("replicated")]

Layout = dict[str, Any]


def owners(layout: Layout) -> Iterator[tuple[int, ...]]:
    """The coordinates that the threads which store hold."""
    for replica, places in zip(layout["replica"], layout["places"], strict=True):
        if replica == 0:
            yield from (tuple(place) for place in places if place is not None)


@pytest.fixture
def layout(printed: Callable[[str], Any], name: str) -> Layout:
    """The layout of that name, of warps of 32 or of waves of 64."""
    found: Layout = printed("layouts" if name in SHAPES else "mfma_layouts")[name]
    return found


def check_partition(layout: Layout, shape: tuple[int, ...]) -> None:
    """Each element is held once by those who store, and every other thread holds the same registers as one of them."""
    assert sorted(owners(layout)) == list(itertools.product(*map(range, shape)))
    kept = [places for replica, places in zip(layout["replica"], layout["places"], strict=True) if replica == 0]
    assert all(places in kept for places in layout["places"])


@pytest.mark.parametrize("name", SHAPES | MFMA_SHAPES)
def test_each_element_is_held_once(layout: Layout, name: str) -> None:
    check_partition(layout, (SHAPES | MFMA_SHAPES)[name])


@pytest.mark.parametrize("name", [*WITH_ROWS, *MFMA_SHAPES])
def test_rows_and_columns_follow_the_layout(layout: Layout, name: str) -> None:
    shape = (SHAPES | MFMA_SHAPES)[name]
    for dim, line in enumerate(("rows", "cols")):
        check_partition(layout[line], (shape[dim],))
        registers = layout[f"{line[:-1]}_registers"]
        for places, line_places in zip(layout["places"], layout[line]["places"], strict=True):
            for reg, place in enumerate(places):
                assert place is None or line_places[registers[reg]] == [place[dim]]


@pytest.mark.parametrize("name", SHAPES | MFMA_SHAPES)
def test_vectors_are_consecutive(layout: Layout, name: str) -> None:
    vector = layout["vector"]
    for places in layout["places"]:
        for first in range(0, len(places), vector):
            start = places[first]
            expected = None if start is None else [[*start[:-1], start[-1] + i] for i in range(vector)]
            assert places[first : first + vector] == (expected or [None] * vector)
            assert start is None or start[-1] % vector == 0


def test_accumulators_are_cutes(printed: Callable[[str], Any]) -> None:
    assert printed("layouts")["mma 16x8"]["places"] == cute_tables.places(cute_tables.C_16X8)


def test_two_neighbouring_accumulators_are_cutes_left_operand(printed: Callable[[str], Any]) -> None:
    assert printed("layouts")["mma 16x16"]["places"] == cute_tables.places(cute_tables.HALF_A)


@pytest.mark.parametrize("n", [8, 16, 104])
def test_wgmma_accumulators_are_cutes(printed: Callable[[str], Any], n: int) -> None:
    assert printed("layouts")[f"wgmma 64x{n}"]["places"] == cute_tables.places(cute_tables.wgmma_64xn(n))


def wgmma_d(thread: int, reg: int) -> list[int]:
    """PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", matrix D: warp w of the four holds rows 16 w to
    16 w + 15; in each 16 x 8 part, lane l holds d0 and d1 in row l / 4, d2 and d3 in row l / 4 + 8, at columns
    2 * (l % 4) and the next; four more registers are the next eight columns."""
    warp, lane = divmod(thread, 32)
    part, place = divmod(reg, 4)
    return [16 * warp + lane // 4 + (8 if place >= 2 else 0), 8 * part + 2 * (lane % 4) + place % 2]


@pytest.mark.parametrize(("name", "warpgroup_rows"), [("wgmma 128x32 2", 64), ("wgmma 256x16 2", 128)])
def test_warpgroups_own_consecutive_rows(printed: Callable[[str], Any], name: str, warpgroup_rows: int) -> None:
    """Sixty-four at a time, each as the PTX ISA has it; registers of one sixty-four stand together."""
    tile_registers = SHAPES[name][1] // 2
    for thread, places in enumerate(printed("layouts")[name]["places"]):
        for reg, place in enumerate(places):
            tile, within = divmod(reg, tile_registers)
            row, column = wgmma_d(thread % 128, within)
            assert place == [thread // 128 * warpgroup_rows + 64 * tile + row, column]


def test_a_producer_holds_copies(printed: Callable[[str], Any]) -> None:
    """The threads behind the warpgroups do not store."""
    replica = printed("layouts")["wgmma 64x24 of 160 threads"]["replica"]
    assert replica[:128] == [0] * 128 and all(replica[128:])


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("16x16", "v_mfma_f32_16x16x16_f16"),
        ("16x64 by 4", "v_mfma_f32_16x16x16_f16"),
        ("16x128 by 8", "v_mfma_f32_16x16x16_f16"),
        ("double 16x32 by 2", "v_mfma_f64_16x16x4_f64"),
        ("32x32", "v_mfma_f32_32x32x8_f16"),
        ("32x64 by 2", "v_mfma_f32_32x32x8_f16"),
    ],
)
def test_mfma_accumulators_are_amds(printed: Callable[[str], Any], name: str, instruction: str) -> None:
    """AMD's table of D, with rows and columns exchanged; instruction t of n takes every n-th column from t on."""
    row = next(each for each in mfma_tables.CDNA3 if each.name == instruction)
    places, items = printed("mfma_layouts")[name]["places"], printed("mfma_layouts")[f"{name} items"]
    for t, registers in enumerate(items):
        for i, j in itertools.product(range(row.m), range(row.n)):
            item, lane = row.place_of_d(i, j, 0)
            assert places[lane][registers[item]] == [j, i * len(items) + t]
