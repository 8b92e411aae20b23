"""Two GEMMs, clean and with one planted fault each: the numbers, and what the checker says with which lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from kernels_under_test import Bench, Outcome, Uninitialised

M = N = K = 256
SCHEDULES = [
    {},
    {"schedule": "reverse"},
    {"landing": "early"},
    {"schedule": "shuffle", "landing": "random", "preempt": 0.02, "seed": 7},
    {"schedule": "shuffle", "landing": "random", "preempt": 0.02, "seed": 8},
]


@dataclass(frozen=True, kw_only=True)
class Gemm:
    """A kernel, the dtype it writes, and how it wants B."""

    library: str
    out: type
    b_is_transposed: bool

    def launch(self, bench: Bench, fault: int = 0, **options: object) -> tuple[Outcome, np.ndarray]:
        """Runs on small integers, whose products and sums are exact. Gives the outcome and the exact product."""
        random = np.random.default_rng(0)
        a = random.integers(-2, 3, (M, K)).astype(np.float16)
        b = random.integers(-2, 3, (K, N)).astype(np.float16)
        stored_b = b.T if self.b_is_transposed else b
        c = Uninitialised((M, N), np.dtype(self.out))
        outcome = bench.launch(self.library, f"{self.library}_run", fault, a, stored_b, c, M, N, K, **options)
        return outcome, a.astype(np.float32) @ b.astype(np.float32)


SM80 = Gemm(library="gemm_sm80", out=np.float32, b_is_transposed=False)
SM90 = Gemm(library="gemm_sm90", out=np.float16, b_is_transposed=True)


@pytest.mark.parametrize("gemm", [SM80, SM90], ids=lambda gemm: gemm.library)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("check", [False, True], ids=["fast", "check"])
def test_clean_gemm_is_right_and_silent(bench: Bench, gemm: Gemm, schedule: dict[str, object], check: bool) -> None:
    outcome, expected = gemm.launch(bench, check=check, **schedule)
    assert outcome.findings == []
    assert outcome.status == 0
    np.testing.assert_array_equal(outcome.arrays[2].astype(np.float32), expected)


# fault number, kind, anchors of the lines that the findings of this kind must name
SM80_FAULTS = {
    "no_sync": (1, "race: write -> read", {"load_A", "load_B", "read_A", "read_B"}),
    "no_sync_overwrite": (1, "race: read -> write", {"load_A", "load_B", "read_A", "read_B"}),
    "loose_wait": (2, "read of in-flight async copy", {"load_A", "load_B", "read_A", "read_B"}),
    "wrong_stage": (3, "write over in-flight async copy", {"load_A", "load_B"}),
    "row_too_far": (4, "global out-of-bounds", {"load_B"}),
    "overlapping_blocks": (5, "race between blocks", {"store_low"}),
    "diverged_mma": (6, "deadlock", {"mma"}),
}
SM90_FAULTS = {
    "one_warp_does_not_wait": (1, "race: write -> read", {"wgmma", "load_A", "load_B"}),
    "released_too_early": (2, "read of in-flight async copy", {"wgmma", "load_A", "load_B"}),
    "init_without_barrier": (
        3,
        "mbarrier init not visible",
        {"init_full", "init_empty", "wait_full", "wait_empty", "expect_full", "load_A", "load_B", "release"},
    ),
    "wrong_parity": (4, "deadlock", {"wait_full", "wait_empty"}),
    "wgmma_never_waited": (5, "wgmma never waited", {"wgmma"}),
    "named_barrier_left_out": (6, "race: write -> read", {"stage", "epilogue"}),
    "sync_threads_of_half_the_block": (7, "__syncthreads with exited threads", {"late_sync"}),
}


@pytest.mark.parametrize("name", SM80_FAULTS)
def test_planted_fault_of_the_sm80_gemm(bench: Bench, name: str) -> None:
    fault, kind, anchors = SM80_FAULTS[name]
    assert_found(bench, SM80, fault, kind, anchors)


@pytest.mark.parametrize("name", SM90_FAULTS)
def test_planted_fault_of_the_sm90_gemm(bench: Bench, name: str) -> None:
    fault, kind, anchors = SM90_FAULTS[name]
    assert_found(bench, SM90, fault, kind, anchors)


def assert_found(bench: Bench, gemm: Gemm, fault: int, kind: str, anchors: set[str]) -> None:
    outcome, _ = gemm.launch(bench, fault, check=True)
    bench.assert_found(gemm.library, outcome, kind, anchors)
    assert outcome.status == (1 if kind == "deadlock" else 0)


def test_early_release_gives_wrong_numbers_under_random_landing(bench: Bench) -> None:
    """Silent in the default order, as on most runs of a GPU."""
    late, expected = SM90.launch(bench, fault=2)
    np.testing.assert_array_equal(late.arrays[2].astype(np.float32), expected)
    wrong = 0
    for seed in range(4):
        outcome, _ = SM90.launch(bench, fault=2, schedule="shuffle", landing="random", preempt=0.0, seed=seed)
        wrong += not np.array_equal(outcome.arrays[2].astype(np.float32), expected)
    assert wrong > 0


def test_workers_share_the_blocks(bench: Bench) -> None:
    outcome, expected = SM80.launch(bench, check=True, workers=2)
    assert outcome.findings == []
    np.testing.assert_array_equal(outcome.arrays[2], expected)


# ---- statistics ----------------------------------------------------------------------------------------------------


def shared_ways(outcome: Outcome, line: int, access: str) -> int:
    rows = outcome.report["statistics"]["shared"]
    (row,) = [row for row in rows if row["place"]["line"] == line and row["access"] == access]
    return int(row["worst_ways"])


def test_swizzled_operands_have_no_bank_conflicts(bench: Bench) -> None:
    outcome, _ = SM80.launch(bench, statistics=True)
    for row in outcome.report["statistics"]["shared"]:
        assert row["worst_ways"] == 1
        assert row["wavefronts"] == row["ideal"]
    assert len(outcome.report["statistics"]["shared"]) == 4


def test_without_swizzle_a_conflicts_4_ways_and_b_8_ways(bench: Bench) -> None:
    outcome, _ = SM80.launch(bench, fault=7, statistics=True)
    library = bench.library("gemm_sm80")
    assert shared_ways(outcome, library.line("read_A"), "read") == 4
    assert shared_ways(outcome, library.line("read_B"), "read") == 8
    assert outcome.findings == []


@pytest.mark.parametrize(("fault", "sectors_per_request"), [(0, 16), (8, 32)])
def test_sectors_of_coalesced_and_scattered_loads(bench: Bench, fault: int, sectors_per_request: int) -> None:
    outcome, _ = SM80.launch(bench, fault=fault, statistics=True)
    line = bench.library("gemm_sm80").line("load_B")
    (row,) = [row for row in outcome.report["statistics"]["global"] if row["place"]["line"] == line]
    assert row["sectors"] == sectors_per_request * row["requests"]
    assert row["ideal"] == 16 * row["requests"]
