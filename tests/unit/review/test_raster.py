"""The picture of the tiles' order is that of the header that kernels call."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.built import built
from tile2cu.api import one_resolved_kernel
from tile2cu.plan.grid import Across, ByXcd, InPanels, LptOrder, TileOrder
from tile2cu.review.raster import Tile, described, order_of_tiles, raster_picture
from tile2cu.targets import find
from tile2cu_runtime import paths
from tile2cu_runtime.compile import host_flags
from tile2cu_runtime.compilers import find_gxx

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
LONG_GRIDS = ((8, 8), (50, 9), (5, 70), (64, 64))
GRIDS = ((8, 8), (5, 7), (3, 12), (12, 3), (1, 4))
PROGRAM = """
#include <tl/tl.h>
#include <cstdio>
extern "C" void tl_engine_note_tile(uint32_t, uint32_t, uint32_t) {}  // the engine is not linked
template <tl::GroupOf across, int xcds> void groups(unsigned columns, unsigned rows, unsigned group) {
  for (unsigned block = 0; block < columns * rows; ++block) {
    const unsigned index = tl::index_by_xcd<xcds>(block, columns * rows);
    const tl::BlockTile tile = tl::tile_in_groups<across>(index, columns, rows, group);
    std::printf("%d,%d ", tile.x, tile.y);
  }
  std::printf("\\n");
}
struct Grid {
  unsigned x, y, z;
};
template <int least> void longest(unsigned columns, unsigned rows) {
  for (unsigned block = 0; block < columns * rows; ++block) {
    const tl::BlockCoord tile = tl::lpt_order<least>(block, Grid{columns, rows, 1});
    std::printf("%d,%d ", tile.x, tile.y);
  }
  std::printf("\\n");
}
template <int xcds> void contiguous(unsigned columns, unsigned rows) {
  for (unsigned block = 0; block < columns * rows; ++block) {
    const tl::BlockCoord tile = tl::contiguous_order<xcds>(block, Grid{columns, rows, 1});
    std::printf("%d,%d ", tile.x, tile.y);
  }
  std::printf("\\n");
}
int main() {
CALLS
}
"""


def panels(size: int, across: Across = Across.ROWS, cluster: tuple[int, ...] = (), dies: int = 1) -> InPanels:
    return InPanels(size=size, across=across, cluster=cluster, dies=dies, rule="")


ORDERS: tuple[TileOrder | None, ...] = (
    None,
    panels(3),
    panels(4, Across.COLUMNS),
    panels(4, cluster=(2, 1)),
    panels(2, cluster=(1, 2)),
    panels(4, dies=8),
    LptOrder(least=4, rule=""),
    ByXcd(xcds=8, rule=""),
)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("columns", "rows"), GRIDS)
def test_each_tile_is_that_of_one_block(order: TileOrder | None, columns: int, rows: int) -> None:
    found = order_of_tiles(order, columns, rows)
    assert sorted((tile.x, tile.y) for tile in found) == [(x, y) for x in range(columns) for y in range(rows)]


def test_groups_of_rows_run_forwards_and_backwards() -> None:
    found = order_of_tiles(panels(2), 3, 4)
    assert [(tile.x, tile.y) for tile in found[:7]] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert order_of_tiles(None, 3, 2)[3] == Tile(0, 1)


@pytest.mark.needs("g++")
def test_the_header_gives_the_same(tmp_path: Path) -> None:
    cases = [(columns, rows, 3, across, dies) for columns, rows in GRIDS for across in Across for dies in (1, 8)]
    calls = [
        f"  groups<tl::GroupOf::{across.value}, {dies}>({columns}, {rows}, {group});"
        for columns, rows, group, across, dies in cases
    ]
    source = tmp_path / "raster.cpp"
    flags = [*host_flags(check=False), "-I", str(paths.headers_dir())]
    calls += [f"  longest<4>({columns}, {rows});" for columns, rows in LONG_GRIDS]
    calls += [f"  contiguous<8>({columns}, {rows});" for columns, rows in LONG_GRIDS]
    source.write_text(PROGRAM.replace("CALLS", "\n".join(calls)), encoding="utf-8")
    program = built("raster", [[find_gxx().path, *flags, str(source), "-c", "-o", "raster.o"]], source)
    linked = [find_gxx().path, str(program.parent / "raster.o"), "-o", str(tmp_path / "raster")]
    subprocess.run(linked, check=True)
    lines = subprocess.run([str(tmp_path / "raster")], check=True, capture_output=True, text=True).stdout.splitlines()
    orders: tuple[TileOrder, ...] = (LptOrder(least=4, rule=""), ByXcd(xcds=8, rule=""))
    long = [(order, *extents) for order in orders for extents in LONG_GRIDS]
    for (each, columns, rows), line in zip(long, lines[len(cases) :], strict=True):
        found = order_of_tiles(each, columns, rows)
        assert [f"{tile.x},{tile.y}" for tile in found] == line.split()
    for (columns, rows, group, across, dies), line in zip(cases, lines, strict=False):
        order = panels(group, across, dies=dies)
        length = columns if across is Across.ROWS else rows
        if dies == 1 and length < group:
            continue  # tl::grouped_order then has groups of two rows
        mine = [f"{tile.x},{tile.y}" for tile in order_of_tiles(order, columns, rows)]
        assert mine == line.split(), (columns, rows, across, dies)


def test_the_picture_has_the_grid_s_tiles_and_the_order_in_words() -> None:
    path = EXAMPLES / "gemm_relu.py"
    sizes = {"M": 1024, "N": 512, "K": 64}
    (resolved,) = one_resolved_kernel(path, None, target=find("cuda:sm_80"), bindings=sizes)
    picture = ElementTree.fromstring(raster_picture(resolved))
    cells = [each for each in picture.iter() if each.get("data-block")]
    assert len(cells) == 8 * 4 and {each.attrib["data-tile"][0] for each in cells} == set("0123")
    assert described(panels(4, dies=8)).endswith("a stretch for each of 8 XCDs")


def test_a_row_of_tiles_in_its_own_order_has_no_picture() -> None:
    (resolved,) = one_resolved_kernel(EXAMPLES / "vector_add.py", None, target=find("cuda:sm_80"), bindings={})
    assert raster_picture(resolved) == ""


@pytest.mark.needs("g++")
def test_blocks_of_a_grid_that_32_bits_do_not_number_keep_their_places(tmp_path: Path) -> None:
    """A grid of fewer is in the order of the XCDs: block 9 is number 1 of XCD 1."""
    calls = """  const unsigned extents[] = {65536, 65535};
  for (const unsigned x : extents) {
    const tl::BlockCoord tile = tl::contiguous_order_of<8>(Grid{9, 2, 3}, Grid{x, 65535, 65535});
    std::printf("%d,%d,%d ", tile.x, tile.y, tile.z);
  }
  const tl::BlockCoord inside = tl::contiguous_order_of<8>(Grid{9, 0, 0}, Grid{65536, 1, 1});
  std::printf("%d,%d,%d ", inside.x, inside.y, inside.z);
  const tl::BlockCoord longest = tl::lpt_order_of<4>(Grid{9, 2, 3}, Grid{65536, 65535, 65535});
  std::printf("%d,%d,%d ", longest.x, longest.y, longest.z);"""
    source = tmp_path / "large.cpp"
    source.write_text(PROGRAM.replace("CALLS", calls), encoding="utf-8")
    flags = [*host_flags(check=False), "-I", str(paths.headers_dir())]
    command = [find_gxx().path, *flags, str(source), "-o", str(tmp_path / "large")]
    subprocess.run(command, check=True)
    printed = subprocess.run([str(tmp_path / "large")], check=True, capture_output=True, text=True).stdout
    assert printed.split() == ["9,2,3", "9,2,3", "8193,0,0", "65526,2,3"]
