"""The style's layouts, as CuTe itself evaluates them, against what the decided layouts mean: element by element.

g++ takes 25 s for CuTe's templates: they are evaluated each night, and where the style writes other layouts than those
that were right then.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import subprocess
from math import prod
from pathlib import Path

import pytest

from tests.built import built
from tests.cpu.test_cute import cuda_headers
from tile2cu.core.layout import Blocked, MmaAccumulator, SharedLayout, Warps
from tile2cu.styles.cute.layouts import atom, copy_threads, threads_and_values, tiled_mma
from tile2cu_runtime.compilers import cutlass_include

# Of the layouts as text, when all tests below were right of them.
RIGHT = "50ae9d6779b74c9f5e43d2036dec9a70"

TILES = [
    SharedLayout((rows, cols), bits, swizzle)
    for rows, cols, bits in ((128, 32, 16), (32, 128, 16), (16, 64, 16), (64, 64, 8), (8, 64, 32))
    for swizzle in (0, 32, 64, 128)
    if not swizzle or cols * bits // 8 % swizzle == 0
]
ACCUMULATORS = [
    MmaAccumulator(128, 128, Warps(2, 2)),
    MmaAccumulator(64, 32, Warps(4, 1)),
    MmaAccumulator(32, 96, Warps(1, 3)),
    MmaAccumulator(128, 64, Warps(4, 2)),
]
COPIES = [(128, 32, 8, 128), (32, 128, 8, 128), (32, 128, 1, 128), (64, 96, 8, 256)]
BLOCKED = [
    Blocked((4, 1000), (4, 32), 4, 128),  # overhangs its tile
    Blocked((1, 4096), (1, 256), 8, 256),
    Blocked((64, 64), (16, 8), 8, 128, rows=2),
    Blocked((16, 32), (8, 4), 8, 64),  # the second warp's threads repeat the first's
]

PROGRAM = """
#include <cstdio>
#include <cute/tensor.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_atom.hpp>
using namespace cute;
template <class Layout> void print_offsets(Layout layout, int rows, int cols) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) printf("%d ", int(layout(r, c)));
  printf("\\n");
}
template <class Tensor> void print_places(const Tensor& part) {
  for (int i = 0; i < size(part); ++i) printf("%d %d ", int(get<0>(part(i))), int(get<1>(part(i))));
}
int main() {
BODY
}
"""


def offset(layout: SharedLayout, row: int, col: int) -> int:
    """Of an element, in elements: headers/tl's swizzle.h in its own words."""
    rows, cols = layout.extents
    bytes_ = layout.element_bits // 8
    if not layout.swizzle:
        return row * cols + col
    width, each = layout.swizzle // bytes_, 16 // bytes_
    panel, inside = divmod(col, width)
    chunk = inside // each ^ (row // (128 // layout.swizzle) % (layout.swizzle // 16))
    return panel * rows * width + row * width + chunk * each + inside % each


def held(layout: MmaAccumulator, thread: int) -> set[tuple[int, int]]:
    """What a thread holds: PTX ISA, "Matrix Fragments for mma.m16n8k16"; a warp's part is contiguous."""
    warp, lane = divmod(thread, 32)
    rows, cols = layout.rows // layout.warps.m, layout.cols // layout.warps.n
    top, left = warp // layout.warps.n * rows, warp % layout.warps.n * cols
    parts = itertools.product(range(0, rows, 8), range(0, cols, 8), range(2))
    return {(top + row + lane // 4, left + col + lane % 4 * 2 + pair) for row, col, pair in parts}


of_cute = pytest.mark.needs("cutlass", "nvcc")


@pytest.fixture
def lines(request: pytest.FixtureRequest) -> list[list[int]]:
    if digest() == RIGHT and not request.config.getoption("--nightly"):
        pytest.skip("nightly: CuTe has evaluated the same layouts before")
    return printed_by_cute(request.getfixturevalue("gxx"), cuda_headers(request.getfixturevalue("nvcc")))


def digest() -> str:
    return hashlib.sha256(text().encode()).hexdigest()[:32]


def test_the_layouts_are_known_to_be_right() -> None:
    """Else: if the tests of this file pass by --nightly, RIGHT is this digest."""
    assert digest() == RIGHT


@functools.cache
def text() -> str:
    """Prints a line for each tile, each thread of each accumulator, each thread of each copy."""
    body = [
        f"print_offsets(tile_to_shape({atom(tile)}, Shape<Int<{tile.extents[0]}>, Int<{tile.extents[1]}>>{{}}), "
        f"{tile.extents[0]}, {tile.extents[1]});"
        for tile in TILES
    ]
    for mma in ACCUMULATORS:
        body.append(
            f"for (int t = 0; t < {mma.threads_of_block}; ++t) {{ "
            f"auto mma = {tiled_mma(mma, 'SM80_16x8x16_F32F16F16F32_TN', 16)}; "
            f"print_places(mma.get_slice(t).partition_C(make_identity_tensor(make_shape(Int<{mma.rows}>{{}}, "
            f'Int<{mma.cols}>{{}})))); printf("\\n"); }}'
        )
    for rows, cols, vector, threads in COPIES:
        body.append(
            f"for (int t = 0; t < {threads}; ++t) {{ auto copy = make_tiled_copy(Copy_Atom<UniversalCopy<half_t>, "
            f"half_t>{{}}, {copy_threads((rows, cols), vector, threads)}); "
            f"print_places(copy.get_slice(t).partition_S(make_identity_tensor(make_shape(Int<{rows}>{{}}, "
            f'Int<{cols}>{{}})))); printf("\\n"); }}'
        )
    for layout in BLOCKED:
        rows, cols = layout.extents
        body.append(
            f"for (int t = 0; t < {prod(layout.threads)}; ++t) {{ auto copy = make_tiled_copy(Copy_Atom<UniversalCopy<"
            f"float>, float>{{}}, {threads_and_values(layout)}); "
            f"print_places(copy.get_slice(t).partition_D(make_identity_tensor(make_shape(Int<{rows}>{{}}, "
            f'Int<{cols}>{{}})))); printf("\\n"); }}'
        )
    return PROGRAM.replace("BODY", "\n".join(body))


@functools.cache
def printed_by_cute(gxx: str, cuda: Path) -> list[list[int]]:
    include = [flag for path in (cutlass_include(), cuda, cuda / "cccl") for flag in ("-I", str(path))]
    command = [gxx, "-std=c++17", "-w", "-O0", *include, "layouts.cpp", "-o", "layouts"]
    read = cutlass_include() / "cutlass" / "version.h"
    program = built("layouts", [command], read, texts={"layouts.cpp": text()})
    printed = subprocess.run([program], capture_output=True, check=True, text=True).stdout
    return [[int(word) for word in line.split()] for line in printed.splitlines()]


@of_cute
def test_shared_tiles(lines: list[list[int]]) -> None:
    for tile, found in zip(TILES, lines, strict=False):
        rows, cols = tile.extents
        assert found == [offset(tile, r, c) for r in range(rows) for c in range(cols)], tile


@of_cute
def test_accumulators(lines: list[list[int]]) -> None:
    start = len(TILES)
    for mma in ACCUMULATORS:
        for thread in range(mma.threads_of_block):
            found = lines[start + thread]
            places = list(zip(found[::2], found[1::2], strict=True))
            assert len(places) == mma.registers and set(places) == held(mma, thread), (mma, thread)
        start += mma.threads_of_block


@of_cute
def test_copies_move_each_element_once(lines: list[list[int]]) -> None:
    start = len(TILES) + sum(mma.threads_of_block for mma in ACCUMULATORS)
    for rows, cols, vector, threads in COPIES:
        places: list[tuple[int, int]] = []
        for found in lines[start : start + threads]:
            own = list(zip(found[::2], found[1::2], strict=True))
            places += own
            for first in range(0, len(own), vector):
                row, col = own[first]
                assert col % vector == 0 and own[first : first + vector] == [(row, col + n) for n in range(vector)]
        assert sorted(places) == list(itertools.product(range(rows), range(cols)))
        start += threads


def held_of_blocked(layout: Blocked, thread: int) -> list[tuple[int, int]]:
    """What a thread of the grid holds, a vector after the other, down the rows first."""
    (rows, cols), at = layout.threads, divmod(thread, layout.threads[1])
    down, along = rows * layout.rows, cols * layout.vector
    tops = range(at[0] * layout.rows, layout.extents[0], down)
    lefts = range(at[1] * layout.vector, -(-layout.extents[1] // along) * along, along)
    inner = itertools.product(range(layout.rows), range(layout.vector))
    return [(top + row, left + col) for (row, col), left, top in itertools.product(inner, lefts, tops)]


@of_cute
def test_partitions_of_fragments(lines: list[list[int]]) -> None:
    start = len(TILES) + sum(mma.threads_of_block for mma in ACCUMULATORS) + sum(copy[-1] for copy in COPIES)
    for layout in BLOCKED:
        for thread in range(prod(layout.threads)):
            found = lines[start + thread]
            places = list(zip(found[::2], found[1::2], strict=True))
            assert sorted(places) == sorted(held_of_blocked(layout, thread)), (layout, thread)
            width = layout.vector
            assert all(places[n + 1] == (r, c + 1) for n, (r, c) in enumerate(places) if n % width != width - 1)
        start += prod(layout.threads)


def test_what_has_no_atom() -> None:
    assert atom(SharedLayout((16, 64), 16, padding=16)) is None
    assert atom(SharedLayout((64,), 16)) is None
    assert atom(SharedLayout((4, 64), 16, 128)) is None
    assert atom(SharedLayout((16, 64), 4)) is None
    assert copy_threads((4, 36), 8, 128) is None
    assert str(copy_threads((4, 32), 8, 128)).startswith("Layout<Shape<_4, _4>")  # fewer threads than the block's
