"""Register counts and slices of layouts: every element is held, exactly as often as the layout says."""

from hypothesis import given
from hypothesis import strategies as st

from tile2cu.core.layout import Blocked, MmaAccumulator, MmaRows, Warps, mma_operand_a, slice_of, threads_along

POWERS = st.sampled_from([1, 2, 4, 8])


@given(POWERS, POWERS, st.integers(1, 4), st.integers(1, 8))
def test_an_accumulator_is_held_once(m: int, n: int, row_tiles: int, col_tiles: int) -> None:
    layout = MmaAccumulator(16 * m * row_tiles, 8 * n * col_tiles, Warps(m, n))
    assert layout.registers * 32 * m * n == layout.rows * layout.cols


@given(POWERS, POWERS, st.integers(1, 4))
def test_rows_of_an_accumulator_are_held_by_their_replicas(m: int, n: int, row_tiles: int) -> None:
    rows = slice_of(MmaAccumulator(16 * m * row_tiles, 64 * n, Warps(m, n)), 0)
    assert rows is not None
    assert rows.registers * 32 * m * n == rows.shape[0] * rows.replicas


def test_rows_do_not_depend_on_the_columns() -> None:
    warps = Warps(4, 1)
    assert slice_of(MmaAccumulator(64, 64, warps), 0) == slice_of(MmaAccumulator(64, 128, warps), 0)
    assert slice_of(MmaAccumulator(64, 64, warps), 0) == MmaRows(64, warps)


def test_a_register_operand_of_whole_rows_is_an_accumulator() -> None:
    assert mma_operand_a(64, 32, Warps(4, 1)) == MmaAccumulator(64, 32, Warps(4, 1))
    assert mma_operand_a(64, 32, Warps(2, 2)) != MmaAccumulator(64, 32, Warps(2, 2))


def test_blocked_counts_the_places_past_the_edge() -> None:
    layout = Blocked((4, 1000), (4, 32), 4, 128)
    assert layout.registers == 32  # 8 steps of 128 columns, the last only partly inside
    assert layout.replicas == 1
    assert threads_along(layout, 1) == (32, 1)


def test_a_row_over_four_warps_needs_all_of_them() -> None:
    assert threads_along(Blocked((1, 4096), (1, 128), 4, 128), 1) == (32, 4)
