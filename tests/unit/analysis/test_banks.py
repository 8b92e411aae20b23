"""Bank conflicts of a warp's access, and that the rules' layouts have none."""

import pytest

from tests.unit.rules.kernels import settled, subject
from tile2cu.analysis.banks import bank_ways
from tile2cu.core.decisions import SHARED_LAYOUT
from tile2cu.core.layout import SharedLayout


def test_neighbours_and_the_same_word_are_free_of_conflicts() -> None:
    assert bank_ways([4 * lane for lane in range(32)], 4) == 1
    assert bank_ways([0] * 32, 4) == 1
    assert bank_ways([lane for lane in range(32)], 1) == 1


def test_lanes_128_bytes_apart_share_a_bank() -> None:
    assert bank_ways([128 * lane for lane in range(32)], 4) == 32
    assert bank_ways([128 * lane for lane in range(32)], 16) == 8  # eight lanes are served at once
    assert bank_ways([136 * lane for lane in range(32)], 8) == 1


@pytest.mark.parametrize(
    ("dtype", "accumulator", "shape", "across", "worst"),
    [
        ("float32", "float32", (32, 64), True, 1),
        ("float32", "float32", (16, 24 * 4), True, 1),
        ("float64", "float64", (64, 32), False, 1),
        ("float64", "float64", (32, 48), True, 1),
        ("int8", "int32", (64, 64), True, 2),  # rows are 16 bytes apart at least: of four rows of K two share banks
    ],
)
def test_gathered_operands_are_stored_with_few_conflicts(
    dtype: str, accumulator: str, shape: tuple[int, int], across: bool, worst: int
) -> None:
    m, k = (shape[1], shape[0]) if across else shape
    context = settled(
        f'A_shared = T.alloc_shared({shape}, "{dtype}")\n'
        f'B_shared = T.alloc_shared((64, {k}), "{dtype}")\n'
        f'C_local = T.alloc_fragment(({m}, 64), "{accumulator}")\n'
        f"T.gemm(A_shared, B_shared, C_local, transpose_A={across}, transpose_B=True)"
    )
    layout = context.facts[subject(context, "A_shared"), SHARED_LAYOUT]  # type: ignore[index]
    assert isinstance(layout, SharedLayout)
    size = layout.element_bits // 8
    pitch = layout.extents[1] * size + layout.padding
    each = max(1, 4 // size)  # PTX ISA, mma fragments: lane 4g + t holds line g, words t of K
    lanes = [(lane // 4, lane % 4 * each) for lane in range(32)]
    places = [k * pitch + line * size if across else line * pitch + k * size for line, k in lanes]
    assert bank_ways(places, size) == worst
