"""A kernel in the Hopper vocabulary, clean and with one omission each: kind and lines of what the checker says."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_under_test import SCHEDULES, Bench, Outcome, Uninitialised

TURNS = 5


def launch(bench: Bench, fault: int, **options: object) -> tuple[Outcome, np.ndarray]:
    """Runs on small integers. Gives the outcome and the exact sum of products."""
    random = np.random.default_rng(0)
    a = random.integers(-2, 3, (64, 64)).astype(np.float16)
    b = random.integers(-2, 3, (TURNS * 64, 64)).astype(np.float16)
    c = Uninitialised((64, 64), np.dtype(np.float16))
    outcome = bench.launch("hopper", "hopper_run", fault, a, b, c, **{"check": True, **options})
    product = a.astype(np.float64) @ b.reshape(TURNS, 64, 64).sum(axis=0).astype(np.float64)
    return outcome, product


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("check", [False, True], ids=["fast", "check"])
def test_clean_kernel_is_right_and_silent(bench: Bench, schedule: dict[str, object], check: bool) -> None:
    outcome, expected = launch(bench, 0, **{**schedule, "check": check})
    assert outcome.findings == []
    assert outcome.status == 0
    np.testing.assert_array_equal(outcome.arrays[2].astype(np.float64), expected)


# fault number, kind, anchors of the lines that the findings of this kind must name
FAULTS = {
    "store_without_fence": (1, "missing fence.proxy.async", {"stage", "store"}),
    "released_before_product": (2, "read of in-flight async copy", {"early", "load_upper", "load_lower"}),
    "copy_without_barrier": (3, "race: write -> read", {"copy_A", "gemm"}),
    "barrier_without_fence": (4, "missing fence.proxy.async", {"copy_A", "gemm"}),
    "too_many_bytes_expected": (5, "deadlock", {"turns", "produce"}),
    "too_few_bytes_expected": (6, "read of in-flight async copy", {"gemm", "load_upper", "load_lower"}),
    "staging_not_waited_for": (7, "TMA store never waited", {"store"}),
    "operand_overwritten_in_flight": (8, "wgmma operand modified in flight", {"spoiled"}),
    "staging_overwritten_in_flight": (9, "race: write -> read", {"store", "overwrite"}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault(bench: Bench, name: str) -> None:
    fault, kind, anchors = FAULTS[name]
    outcome, _ = launch(bench, fault)
    bench.assert_found("hopper", outcome, kind, anchors)


@pytest.mark.parametrize("name", ["store_without_fence", "copy_without_barrier", "barrier_without_fence"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_what_the_numbers_do_not_show_is_found_in_every_order(
    bench: Bench, name: str, schedule: dict[str, object]
) -> None:
    fault, kind, _ = FAULTS[name]
    assert kind in launch(bench, fault, **schedule)[0].kinds
