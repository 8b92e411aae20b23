"""`tile2cu layout`: every element is drawn once, where the layout puts it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import tile2cu
from tile2cu.analysis.elements import byte_of, holders
from tile2cu.cli import main
from tile2cu.core.layout import Blocked, FragmentLayout, MmaAccumulator, SharedLayout, Warps, WgmmaAccumulator, slice_of
from tile2cu.core.mfma_layout import MfmaAccumulator
from tile2cu.review.layouts import TileLayout
from tile2cu.review.pictures import Window, fragment_picture, shared_picture
from tile2cu.review.svg import ranges

GEMM = Path(__file__).resolve().parents[3] / "examples" / "gemm_relu.py"
Element = tuple[int, ...]


def cells(svg: str) -> list[dict[str, str]]:
    """The data attributes of the rectangles that stand for elements."""
    found = [element.attrib for element in ElementTree.fromstring(svg).iter() if "data-at" in element.attrib]
    return [{name.removeprefix("data-"): value for name, value in each.items()} for each in found]


def elements(cell: dict[str, str]) -> list[Element]:
    *leading, first = map(int, cell["at"].split(","))
    return [(*leading, first + i) for i in range(int(cell["count"]))]


def numbers(text: str) -> list[int]:
    """The numbers that `ranges` describes."""
    found = []
    for part in text.split(", "):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def rows_of(layout: FragmentLayout) -> FragmentLayout:
    found = slice_of(layout, (0,))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "layout",
    [
        MmaAccumulator(32, 48, Warps(2, 2)),
        rows_of(MmaAccumulator(64, 48, Warps(2, 2))),
        WgmmaAccumulator(64, 24, 1),
        MfmaAccumulator(32, 64, Warps(2, 1), interleave=2),
        Blocked((9, 40), (4, 5), 8, 64),
        Blocked((200,), (32,), 4, 64),
        Blocked((3, 5, 20), (2, 4, 4), 4, 32),
    ],
    ids=str,
)
def test_each_element_is_drawn_with_its_threads_and_register(layout: FragmentLayout) -> None:
    held, seen = holders(layout), []
    for cell in cells(fragment_picture("C", layout)):
        for step, at in enumerate(elements(cell)):
            seen.append(at)
            threads, register = numbers(cell["threads"]), int(cell["register"]) + step
            assert held[at][0] == (threads[0], register)
            assert [thread for thread, _ in held[at]] == threads
    assert sorted(seen) == sorted(held)


@pytest.mark.parametrize(
    "layout",
    [
        SharedLayout((16, 128), 16, 128),
        SharedLayout((8, 32), 16, 64),
        SharedLayout((8, 24), 16, padding=16),
        SharedLayout((40,), 32),
        SharedLayout((2, 8, 24), 8),
    ],
    ids=str,
)
def test_each_chunk_of_a_shared_tile_is_drawn_with_its_banks(layout: SharedLayout) -> None:
    seen = []
    for cell in cells(shared_picture("A", layout)):
        own = elements(cell)
        seen += own
        places = [byte_of(layout, at) for at in own]
        assert places[0] == int(cell["byte"])
        assert {place // 4 % 32 for place in places} <= set(numbers(cell["banks"]))
        size = layout.element_bits // 8
        assert places == [places[0] + size * step for step in range(len(own))]
    assert len(set(seen)) == len(seen)
    assert len(seen) * layout.element_bits // 8 <= layout.bytes


def test_a_swizzle_spreads_a_column_over_all_banks() -> None:
    """What ldmatrix reads at a time, eight rows of a chunk, is in different banks."""
    picture = cells(shared_picture("A", SharedLayout((8, 64), 16, 128)))
    column = [numbers(cell["banks"]) for cell in picture if cell["at"].endswith(",8")]
    assert sorted(bank for banks in column for bank in banks) == list(range(32))


def test_banks_are_those_of_the_target() -> None:
    last = cells(shared_picture("A", SharedLayout((1, 128), 16), banks=64))[-1]
    assert last["banks"] == "60-63"


def test_a_window_has_the_first_rows_and_columns() -> None:
    picture = fragment_picture("C", MmaAccumulator(128, 128, Warps(2, 2)), Window(rows=16, cols=32))
    assert {at for cell in cells(picture) for at in elements(cell)} == {(i, j) for i in range(16) for j in range(32)}
    assert "the first 16 x 32 are shown" in picture


def test_ranges() -> None:
    assert ranges([0, 1, 2, 5, 8, 9]) == "0-2, 5, 8-9"


def test_the_command_writes_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "c.svg"
    assert main(["layout", str(GEMM), "--tile", "C_local", "--window", "16x16", "-o", str(place)]) == 0
    assert main(["layout", str(GEMM), "--tile", "C_local", "--window", "16x16"]) == 0
    assert capsys.readouterr().out == place.read_text(encoding="utf-8")
    assert ElementTree.parse(place).getroot().get("role") == "img"


def test_the_command_lists_tiles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", str(GEMM), "--target", "hip:gfx942"]) == 0
    listed = capsys.readouterr().out
    assert [line.partition(":")[0] for line in listed.splitlines()] == ["A_shared", "B_shared", "C_local"]
    assert "MfmaAccumulator" not in listed  # in words


def test_a_name_that_is_nearly_a_tile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", str(GEMM), "--tile", "C_loca"]) == 1
    assert "did you mean `C_local`?" in capsys.readouterr().err


@pytest.mark.parametrize("window", ["16", "0x4", "x"])
def test_a_wrong_window(window: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", str(GEMM), "--tile", "C_local", "--window", window]) == 1
    assert "ROWSxCOLS" in capsys.readouterr().err


def test_notebooks_show_a_layout(tmp_path: Path) -> None:
    tile = TileLayout(name="C", layout=MmaAccumulator(16, 8, Warps(1, 1)), banks=32, rule="r", line=1)
    assert tile._repr_html_() == tile.plot()._repr_svg_() == tile.plot(tmp_path / "c.svg").svg
    assert (tmp_path / "c.svg").read_text(encoding="utf-8") == tile.plot().svg


@pytest.mark.needs("g++")
def test_a_loaded_kernel_has_the_layouts_of_its_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path))
    kernel = tile2cu.load(GEMM, device="cpu", block_M=32, block_N=32)
    assert list(kernel.layouts) == ["A_shared", "B_shared", "C_local"]
    assert kernel.layouts["C_local"].shape == (32, 32)
    assert "<svg" in kernel.layouts["C_local"]._repr_html_()
    shown = kernel._repr_html_()
    assert shown.count("<svg") == 3 and "layout of C_local: (T128 threads" in shown
    assert "#include &lt;tl/tl.h&gt;" in shown and "&lt;tile2cu kernel gemm_relu(A, B, C)" in shown
