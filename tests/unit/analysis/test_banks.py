"""Bank conflicts of a warp's access, and that the rules' layouts have none."""

import numpy as np
import pytest

from tests.unit.rules.kernels import resolved, subject
from tile2cu.analysis.banks import bank_ways, lds_ways
from tile2cu.core.decisions import SHARED_LAYOUT
from tile2cu.core.layout import SharedLayout
from tile2cu_runtime.amdgcn.lds_banks import bank_use, phase_of_lane


def test_neighbours_and_the_same_word_are_free_of_conflicts() -> None:
    assert bank_ways([4 * lane for lane in range(32)], 4) == 1
    assert bank_ways([0] * 32, 4) == 1
    assert bank_ways([lane for lane in range(32)], 1) == 1


def test_lanes_128_bytes_apart_share_a_bank() -> None:
    assert bank_ways([128 * lane for lane in range(32)], 4) == 32
    assert bank_ways([128 * lane for lane in range(32)], 16) == 8  # eight lanes are served at once
    assert bank_ways([136 * lane for lane in range(32)], 8) == 1


@pytest.mark.parametrize("banks", [32, 64])
@pytest.mark.parametrize(("width", "is_read"), [(4, True), (8, True), (8, False), (16, True), (16, False)])
def test_lds_is_served_as_the_simulator_serves_it(banks: int, width: int, is_read: bool) -> None:
    """Ways are the words of a bank in the simulator's phases; with one way it counts no conflict."""
    generator = np.random.default_rng(7)
    found, phase_of = set(), phase_of_lane(width, banks, is_read=is_read)
    for _ in range(60):
        shift, step, flip = (int(each) for each in generator.integers(0, (5, 9, 8)))
        lanes = np.arange(64)
        at = (lanes * width * step + (lanes >> shift & flip) * width).astype(np.int64)
        use = bank_use(at[None], width, None, banks, is_read=is_read)
        ways = lds_ways(at.tolist(), width, is_read=is_read, banks=banks)
        phases = [at[phase_of == phase] for phase in range(int(64 * width / 4))]
        assert ways == max(_words_of_a_bank(phase, width, banks) for phase in phases if len(phase))
        assert ways > 1 or use.cycles == use.ideal
        found.add(ways > 1)
    assert found == {True, False}


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
    context = resolved(
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


def _words_of_a_bank(at: np.ndarray, width: int, banks: int) -> int:
    words = np.unique((at // 4)[:, None] + np.arange(width // 4))
    return int(np.bincount(words % banks).max())
