"""What a launch is said to cost: instructions, matrix cores, cache lines, LDS banks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.amdgcn.build import KERNELS, compile_hip, compile_text
from tile2cu_runtime.amdgcn import CostReport, simulate
from tile2cu_runtime.amdgcn.lds_banks import BankUse, bank_use, phase_of_lane

LANE = np.arange(64)


def use(at: np.ndarray, width: int, banks: int = 32, *, is_read: bool = True) -> tuple[int, int]:
    found = bank_use(at[None], width, None, banks, is_read=is_read)
    return found.cycles, found.ideal


def test_neighbours_fill_the_banks() -> None:
    assert use(4 * LANE, 4) == (2, 2)
    assert use(8 * LANE, 8) == (4, 4)
    assert use(16 * LANE, 16, is_read=False) == (8, 8)
    assert use(16 * LANE, 16) == (8, 8)
    assert use(16 * LANE, 16, banks=64) == (4, 4)


def test_one_word_is_shared_and_one_bank_is_not() -> None:
    assert use(0 * LANE, 4) == (2, 2)
    assert use(128 * LANE, 4) == (64, 2)
    assert use(8 * LANE, 4) == (4, 2)


def test_128_byte_rows_conflict_and_a_swizzle_does_not() -> None:
    """32 rows of 128 bytes, 16 bytes a lane, two lanes a row, as an MFMA operand is read."""
    row, chunk = LANE % 32, LANE // 32
    plain = use(128 * row + 16 * chunk, 16)
    swizzled = use(128 * row + 16 * (chunk ^ row % 8), 16)
    assert plain == (64, 8)
    assert swizzled == (8, 8)


def test_inactive_lanes_cost_nothing() -> None:
    found = bank_use(128 * LANE[None], 4, (LANE < 3)[None], 32, is_read=True)
    assert found == BankUse(3, 1)


@pytest.mark.parametrize("banks", [32, 64])
def test_phases_of_16_byte_reads_have_as_many_lanes_as_the_banks_serve(banks: int) -> None:
    counts = np.bincount(phase_of_lane(16, banks, is_read=True))
    assert counts.tolist() == [banks // 4] * (256 // banks)


def product(code: Path, *, measure: bool = False) -> CostReport:
    a, b = np.ones((128, 64), np.float16), np.ones((256, 64), np.float16)
    c = np.zeros((128, 256), np.float32)
    return simulate(code, "gemm", (2, 1), 256, [a, b, c, 128, 256, 64], measure=measure).cost


def test_gemm_by_hand(tmp_path: Path) -> None:
    cost = product(compile_hip(KERNELS / "gemm.hip", "gfx942", tmp_path))
    waves, trips = 8, 2
    assert cost.waves == waves
    assert cost.count("mfma") == waves * trips * 16  # 64x64x32 a wave and trip, in 32x32x8
    assert cost.mfma_cycles == cost.count("mfma") * 32
    assert cost.count("barrier") == waves * trips * 2
    assert cost.lds_bytes == waves * 64 * trips * (4 * 16 + 16 * 8)
    assert cost.global_bytes == waves * 64 * (trips * 4 * 16 + 64 * 4)
    assert cost.wave_instructions == sum(each.executed for each in cost.instructions)
    assert cost.measured is None
    assert "matrix cores busy" in str(cost)


def test_measured_gemm(tmp_path: Path) -> None:
    """Lines: 2 blocks read 256 rows of 128 bytes in halves of 64, and write 128 rows of 512."""
    cost = product(compile_hip(KERNELS / "gemm.hip", "gfx942", tmp_path), measure=True)
    assert cost.measured is not None
    assert cost.measured.global_lines == 2 * (256 * 2 + 128 * 8)
    assert cost.measured.lds.ideal == cost.lds_bytes // 128
    assert cost.measured.lds.cycles >= cost.measured.lds.ideal
    assert "LDS banks busy" in str(cost)


def test_loads_that_go_to_lds_are_counted(tmp_path: Path) -> None:
    code = compile_hip(KERNELS / "faults.hip", "gfx942", tmp_path)
    a, c = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    assert simulate(code, "dma_awaited", 1, 256, [a, c]).cost.direct_to_lds == 4
    assert simulate(code, "load_awaited", 1, 256, [a, c]).cost.direct_to_lds == 0


COLUMNS = """
#include "standalone.h"
extern "C" __global__ void columns(const float* a, float* c) {
  __shared__ float s[64 * 64];
  for (int i = 0; i < 64; ++i) s[i * 64 + thread()] = a[i * 64 + thread()];
  sync();
  for (int i = 0; i < 64; ++i) c[i * 64 + thread()] = s[thread() * 64 + i];
}
"""


def test_reading_columns_conflicts_in_every_bank(tmp_path: Path) -> None:
    code = compile_text(COLUMNS, "columns", "gfx942", tmp_path, "-O1")
    a, c = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
    measured = simulate(code, "columns", 1, 64, [a, c], measure=True).cost.measured
    assert measured is not None
    np.testing.assert_array_equal(c.reshape(64, 64), a.reshape(64, 64).T)
    # Rows: 2 cycles a store. Columns: all 64 lanes in one bank.
    assert measured.lds.ideal == 2 * 64 * 2
    assert measured.lds.cycles == 64 * 2 + 64 * 64
