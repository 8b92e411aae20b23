"""Where the pictures of layouts put an element is where the C++ types do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from tile2cu.analysis.banks import lds_ways
from tile2cu.analysis.elements import byte_of, element, holders
from tile2cu.core.layout import (
    Blocked,
    FragmentLayout,
    MmaAccumulator,
    MmaOperandA,
    MmaOperandB,
    Replicated,
    SharedLayout,
    Warps,
    WgmmaAccumulator,
    slice_of,
    split_columns,
)
from tile2cu.core.mfma_layout import MfmaAccumulator, MfmaOperandA

pytestmark = pytest.mark.needs("g++")

LAYOUTS: dict[str, FragmentLayout] = {
    "mma 96x72 2x3": MmaAccumulator(96, 72, Warps(2, 3)),
    "mma 32x64 1x2 of 4 warps": MmaAccumulator(32, 64, Warps(1, 2)),
    "operand 64x32 2x2": MmaOperandA(64, 32, Warps(2, 2)),
    "blocked 1000": Blocked((1000,), (128,), 4, 128),
    "blocked 4 of 64 threads": Blocked((4,), (4,), 1, 64),
    "blocked 30x50": Blocked((30, 50), (8, 16), 2, 128),
    "blocked 9x40 of 20 threads of 64": Blocked((9, 40), (4, 5), 8, 64),
    "blocked 3x5x20": Blocked((3, 5, 20), (2, 4, 4), 4, 32),
    "wgmma 64x104": WgmmaAccumulator(64, 104, 1),
    "wgmma 256x16 2": WgmmaAccumulator(256, 16, 2),
    "replicated 3x4": Replicated((3, 4), 64),
}
MFMA: dict[str, FragmentLayout] = {
    "16x64 by 4": MfmaAccumulator(16, 64, Warps(1, 1), interleave=4),
    "double 16x32 by 2": MfmaAccumulator(16, 32, Warps(1, 1), interleave=2, run=1),
    "32x64 by 2": MfmaAccumulator(32, 64, Warps(1, 1), interleave=2, size=32),
    "96x128 3x2 by 4": MfmaAccumulator(96, 128, Warps(3, 2), interleave=4),
    "64x96 2x1 of 4 waves by 2": MfmaAccumulator(64, 96, Warps(2, 1), interleave=2),
    "operand 64x32 2x2": MfmaOperandA(64, 32, Warps(2, 2)),
}
SHARED = {
    "128 half 32x192": SharedLayout((32, 192), 16, 128),
    "128 float 16x64": SharedLayout((16, 64), 32, 128),
    "128 byte 24x128": SharedLayout((24, 128), 8, 128),
    "64 half 32x96": SharedLayout((32, 96), 16, 64),
    "32 half 16x48": SharedLayout((16, 48), 16, 32),
    "padded half 32x128": SharedLayout((32, 128), 16, 0, 16),
    "none half 8x24": SharedLayout((8, 24), 16),
}


def check(layout: FragmentLayout, threads: Any) -> None:
    """Thread by thread; `threads` is what the C++ type prints."""
    for thread, places in enumerate(threads["places"]):
        assert [element(layout, thread, register) for register in range(layout.registers)] == [
            None if place is None else tuple(place) for place in places
        ]


@pytest.mark.parametrize("name", [*LAYOUTS, *(f"mfma {name}" for name in MFMA)])
def test_elements_and_slices_are_those_of_the_types(printed: Callable[[str], Any], name: str) -> None:
    mfma = name.removeprefix("mfma ") if name not in LAYOUTS else ""
    layout = MFMA[mfma] if mfma else LAYOUTS[name]
    found = printed("mfma_layouts")[mfma] if mfma else printed("layouts")[name]
    check(layout, found)
    for dim, line in enumerate(("rows", "cols") if "rows" in found else ()):
        part = slice_of(layout, (dim,))
        if part is not None:
            check(part, found[line])


@pytest.mark.parametrize("name", SHARED)
def test_chunks_are_at_the_bytes_of_the_types(printed: Callable[[str], Any], name: str) -> None:
    layout, found = SHARED[name], printed("shared_tiles")[name]
    chunk = 128 // layout.element_bits
    for row, offsets in enumerate(found["offsets"]):
        assert [byte_of(layout, (row, col * chunk)) for col in range(len(offsets))] == offsets
    assert layout.bytes == found["bytes"]


@pytest.mark.parametrize("rows, cols", [(64, 128), (32, 32)])
def test_interleaved_rows_are_at_the_bytes_of_the_type(printed: Callable[[str], Any], rows: int, cols: int) -> None:
    """The elements of a column in four rows are neighbours, and lanes access all banks."""
    layout = SharedLayout((rows, cols), 16, rows_interleaved=4)
    found = printed("mfma_layouts")[f"interleaved {rows}x{cols}"]
    assert [byte_of(layout, (row, col)) for row in range(rows) for col in range(cols)] == found["offsets"]
    assert layout.bytes == found["bytes"] and sorted(found["offsets"]) == [*range(0, layout.bytes, 2)]
    for quad, col in product(range(0, rows, 4), range(cols)):
        assert [byte_of(layout, (quad + r, col)) - byte_of(layout, (quad, col)) for r in range(4)] == [0, 2, 4, 6]
    for word in range(4):  # a lane stores four chunks of two columns, lanes 8 columns of a quad of rows each
        pieces = [divmod(8 * lane, cols) for lane in range(64)][: rows // 4 * cols // 8]
        stored = [byte_of(layout, (4 * quad, col + 2 * word)) for quad, col in pieces]
        assert lds_ways(stored, 16, is_read=False) == 1
    for count, piece in product((1, 2), (4, 8)):  # columns that a lane reads, and its neighbours along K
        lanes = [(piece * (lane // 16), count * (lane % 16)) for lane in range(64)]
        assert lds_ways([byte_of(layout, at) for at in lanes], 8 * count, is_read=True) == 1


@pytest.mark.parametrize("transposed", [False, True])
def test_operand_b_is_ptx(transposed: bool) -> None:
    """[PTX ISA, "Matrix Fragments for mma.m16n8k16", B: row = 2 (lane % 4) + i % 2 + 8 (i / 2), column = lane / 4]"""
    layout = MmaOperandB(16, 8, Warps(1, 1), transposed)
    for lane in range(32):
        for i in range(4):
            k, n = lane % 4 * 2 + i % 2 + 8 * (i // 2), lane // 4
            assert element(layout, lane, i) == ((n, k) if transposed else (k, n))


def test_columns_in_groups_are_those_of_the_accumulator() -> None:
    of = MmaAccumulator(32, 64, Warps(2, 2))
    layout = split_columns(of, 16)
    assert layout is not None
    held = holders(layout)
    assert {(i, j * 16 + k): threads for (i, j, k), threads in held.items()} == holders(of)
    planes = slice_of(layout, (0, 1))
    assert planes is not None
    for (i, j), values in holders(planes).items():
        in_group = {thread for k in range(16) for thread, _ in held[i, j, k]}
        assert {thread for thread, _ in values} == in_group


def test_planes_and_vectors_of_shared_memory() -> None:
    """Planes start at their alignment; a swizzled vector is stored as rows of the swizzle's span."""
    planes = SharedLayout((2, 8, 24), 16)
    assert byte_of(planes, (1, 0, 0)) == 8 * 48
    vector, rows = SharedLayout((1024,), 16, 128), SharedLayout((16, 64), 16, 128)
    assert all(
        byte_of(vector, (64 * row + col,)) == byte_of(rows, (row, col)) for row in range(16) for col in range(64)
    )
