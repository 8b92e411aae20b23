"""Register counts and slices of layouts: every element is held, exactly as often as the layout says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile2cu.core.layout import (
    Along,
    Blocked,
    FragmentLayout,
    MmaAccumulator,
    Replicated,
    Warps,
    WgmmaAccumulator,
    mma_operand_a,
    slice_of,
)

POWERS = st.sampled_from([1, 2, 4, 8])


@given(POWERS, POWERS, st.integers(1, 4), st.integers(1, 8))
def test_an_accumulator_is_held_once(m: int, n: int, row_tiles: int, col_tiles: int) -> None:
    layout = MmaAccumulator(16 * m * row_tiles, 8 * n * col_tiles, Warps(m, n))
    assert layout.registers * 32 * m * n == layout.rows * layout.cols


@given(POWERS, POWERS, st.integers(1, 4))
def test_rows_of_an_accumulator_are_held_by_their_replicas(m: int, n: int, row_tiles: int) -> None:
    rows = slice_of(MmaAccumulator(16 * m * row_tiles, 64 * n, Warps(m, n)), (0,))
    assert rows is not None
    assert rows.registers * 32 * m * n == rows.shape[0] * rows.replicas


def test_rows_do_not_depend_on_the_columns() -> None:
    warps = Warps(4, 1)
    assert slice_of(MmaAccumulator(64, 64, warps), (0,)) == slice_of(MmaAccumulator(64, 128, warps), (0,))
    assert slice_of(Blocked((64, 96), (4, 32), 4, 128), (0,)) == slice_of(Blocked((64, 32), (4, 32), 1, 128), (0,))


def test_columns_do_not_depend_on_the_rows() -> None:
    assert slice_of(WgmmaAccumulator(128, 64, 2), (1,)) == slice_of(WgmmaAccumulator(256, 64, 2), (1,))
    assert slice_of(Blocked((64, 96), (4, 32), 1, 128), (1,)) != slice_of(Blocked((64, 96), (4, 32), 4, 128), (1,))


@pytest.mark.parametrize(
    ("layout", "kept", "registers", "replicas"),
    [  # PTX ISA: 4 lanes of a warp hold a row of an accumulator, 8 a column
        (MmaAccumulator(64, 32, Warps(2, 2)), (0,), 4, 8),
        (MmaAccumulator(64, 32, Warps(2, 2)), (1,), 4, 16),
        (WgmmaAccumulator(128, 32, 2), (0,), 2, 4),
        (WgmmaAccumulator(128, 32, 2), (1,), 8, 64),
        (Blocked((4, 8, 64), (2, 4, 16), 4, 128), (0, 1), 4, 16),
        (Blocked((4, 8, 64), (4, 32, 1), 4, 128), (0, 1), 1, 1),
        (Replicated((4, 8), 128), (1,), 8, 128),
    ],
)
def test_slices(layout: FragmentLayout, kept: tuple[int, ...], registers: int, replicas: int) -> None:
    values = slice_of(layout, kept)
    assert values is not None
    assert (values.registers, values.replicas) == (registers, replicas)


def test_only_slices_with_a_c_type() -> None:
    assert slice_of(Blocked((4, 8, 64), (2, 4, 16), 4, 128), (1, 2)) is None
    assert slice_of(Blocked((4, 8), (2, 64), 1, 128), (1, 0)) is None


def test_a_register_operand_of_whole_rows_is_an_accumulator() -> None:
    assert mma_operand_a(64, 32, Warps(4, 1)) == MmaAccumulator(64, 32, Warps(4, 1))
    assert mma_operand_a(64, 32, Warps(2, 2)) != MmaAccumulator(64, 32, Warps(2, 2))


def test_blocked_counts_the_places_past_the_edge() -> None:
    layout = Blocked((4, 1000), (4, 32), 4, 128)
    assert layout.registers == 32  # 8 steps of 128 columns, the last only partly inside
    assert layout.replicas == 1
    assert layout.along(1) == Along(32, 1, 32)


def test_lanes_exchange_by_flipping_bits() -> None:
    layout = Blocked((64, 160), (6, 20), 8, 128)  # 120 of 128 threads; the others hold copies
    assert layout.along(1) == Along(4, 5, 8)
    assert layout.along(0) == Along(1, 6, 11)
    assert layout.replicas == 2


def test_neighbouring_rows_are_the_thread_s_own() -> None:
    layout, apart = Blocked((8, 144), (4, 32), 8, 128, rows=2), Blocked((8, 144), (4, 32), 8, 128)
    assert (layout.along(0), layout.along(1), layout.has_idle_lanes) == (Along(1, 4, 2), Along(32, 1, 8), True)
    assert not Blocked((8, 256), (4, 32), 8, 128, rows=2).has_idle_lanes
    assert slice_of(layout, (0,)) == slice_of(Blocked((8, 64), (4, 32), 2, 128, rows=2), (0,)) != slice_of(apart, (0,))
    assert slice_of(layout, (1,)) == slice_of(apart, (1,))


def test_a_row_over_four_warps_needs_all_of_them() -> None:
    assert Blocked((1, 4096), (1, 128), 4, 128).along(1) == Along(32, 4, 32)


def test_waves_of_64_need_half_as_many_parts() -> None:
    assert Blocked((1, 4096), (1, 128), 4, 128, warp_size=64).along(1) == Along(64, 2, 32)
