"""`T.Layout` and `T.Fragment` of a program that runs: where each element is, and their pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import product
from pathlib import Path

import pytest

import tile2cu.tilelang as tilelang
import tile2cu.tilelang.language as T
from tile2cu.analysis.elements import byte_of, holders
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.layout import MmaAccumulator, SharedLayout, Warps
from tile2cu.tilelang.layout import (
    make_full_bank_swizzled_layout,
    make_half_bank_swizzled_layout,
    make_quarter_bank_swizzled_layout,
    make_swizzled_layout,
)
from tile2cu.tilelang.symbols import Symbol
from tile2cu.tilelang.tools import plot_layout


def cells(picture: str) -> list[dict[str, str]]:
    return [dict(each.attrib) for each in ElementTree.fromstring(picture).iter() if "data-at" in each.attrib]


def operand_a() -> T.Fragment:
    """A of mma.m16n8k16 as ldmatrix loads it: the layout of an accumulator of 16 x 16."""
    return T.Fragment(
        [16, 16],
        forward_thread_fn=lambda i, j: i % 8 * 4 + j % 8 // 2,
        forward_index_fn=lambda i, j: j // 8 * 4 + i // 8 * 2 + j % 2,
    )


def test_a_transposed_layout() -> None:
    layout = tilelang.Layout([4, 8], lambda i, j: (j, i))
    assert isinstance(layout, T.Layout) and layout.get_input_shape() == [4, 8] and layout.get_output_shape() == [8, 4]
    assert layout.map_forward_index([1, 5]) == [5, 1] and str(layout) == "Layout([4, 8] -> [8, 4])"
    found = {cell["data-at"]: cell["data-to"] for cell in cells(layout.plot().svg)}
    assert found == {f"{i},{j}": f"{j},{i}" for i, j in product(range(4), range(8))}


def test_repeated_and_expanded_layouts() -> None:
    layout = T.Layout([4], lambda i: i ^ 1)
    assert layout.repeat(0, 3).map_forward_index([9]) == [2, 0]
    assert layout.repeat(-1, 3).get_output_shape() == [3, 4]
    assert layout.expand([2]).map_forward_index([1, 2]) == [1, 3]


@pytest.mark.parametrize(
    ("make", "span"),
    [
        (make_full_bank_swizzled_layout, 128),
        (make_half_bank_swizzled_layout, 64),
        (make_quarter_bank_swizzled_layout, 32),
    ],
)
def test_swizzles_are_those_of_shared_tiles(make: object, span: int) -> None:
    """The offsets in bytes are those of the tiles that tile2cu lays out, slabs included."""
    assert callable(make)
    layout, tile = make(16, 128, 16), SharedLayout(extents=(16, 128), element_bits=16, swizzle=span)
    for row, column in product(range(16), range(128)):
        slab, to_row, to_column = layout.map_forward_index([row, column])
        assert 2 * ((slab * 16 + to_row) * (span // 2) + to_column) == byte_of(tile, (row, column))


def test_a_fragment_holds_what_the_instruction_s_layout_holds() -> None:
    base = operand_a()
    expected = holders(MmaAccumulator(16, 16, Warps(1, 1)))
    assert base.get_thread_size() == 32 and base.get_output_shape() == [8]
    for at, held in expected.items():
        assert ((base.map_forward_thread(at), base.map_forward_index(at)[0]),) == held
    (first, *_) = cells(base.plot().svg)
    assert (first["data-at"], first["data-threads"], first["data-register"]) == ("0,0", "0", "0")
    assert str(base) == "Fragment([16, 16] -> 32 threads, 8 registers each)"


def test_fragments_are_repeated_and_replicated() -> None:
    """Two warps along the rows, two copies of each; then four tiles of a thread along the rows, and two along K."""
    warps = operand_a().repeat([2, 1], repeat_on_thread=True).replicate(2)
    assert warps.get_thread_size() == 128 and warps.get_output_shape() == [8]
    assert warps.map_forward_thread([17, 2]) == 32 + 5
    block = warps.repeat([4, 2], repeat_on_thread=False, lower_dim_first=False)
    assert block.get_input_shape() == [128, 32] and block.get_output_shape() == [64]
    assert block.map_forward_index([32, 0]) == [8] and block.map_forward_index([0, 16]) == [32]
    assert warps.repeat([4, 2]).map_forward_index([0, 16]) == [8]
    copied = next(cell for cell in cells(block.plot().svg) if cell["data-at"] == "32,0")
    assert copied["data-threads"] == "0, 64" and copied["data-register"] == "8"
    assert "2 copies" in str(block)


def test_one_function_for_thread_and_register() -> None:
    rows = T.Fragment([8], lambda i, copy: (i // 2 + 4 * copy, i % 2), replicate=2)
    assert rows.get_thread_size() == 8 and rows.get_output_shape() == [2]
    assert {cell["data-threads"] for cell in cells(rows.plot().svg)} == {"0, 4", "1, 5", "2, 6", "3, 7"}


def test_plots_are_written(tmp_path: Path) -> None:
    written = plot_layout(operand_a(), str(tmp_path / "new"), name="a")
    assert written == tmp_path / "new" / "a.svg" and cells(written.read_text(encoding="utf-8"))
    assert operand_a()._repr_svg_() == operand_a().plot().svg


def test_a_layout_that_is_no_function_of_numbers() -> None:
    with pytest.raises(Tile2CuError, match="C031"):
        T.Layout([T.dynamic("m"), 4], lambda i, j: (j, i)).plot()
    with pytest.raises(Tile2CuError, match="C031"):
        T.Layout([1 << 10, 1 << 10], lambda i, j: (j, i)).plot()
    with pytest.raises(Tile2CuError, match="C031"):
        T.Layout([4], lambda i: T.dynamic("m") + i).plot()
    assert isinstance(make_swizzled_layout, Symbol)  # of a kernel's buffers
