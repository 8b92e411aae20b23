"""Small kernels, clean and with one planted fault each: kind and line of what the checker says."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from kernels_under_test import Bench, Outcome, Uninitialised

from tile2cu_runtime.engine import EngineOptions

SHUFFLED = {"schedule": "shuffle", "landing": "random", "preempt": 0.05}
FLOATS = np.dtype(np.float32)
OUT = Uninitialised((4096,), FLOATS)


def launch(bench: Bench, kernel: str, fault: int, out: object = OUT, **options: object) -> Outcome:
    inputs = np.arange(4096, dtype=np.float32)
    return bench.launch("micro", f"{kernel}_run", fault, inputs, out, **{"check": True, **options})


CLEAN = {
    "block_sum": np.full(256, np.arange(4096).sum()),
    "warp_exchange": 31 - np.arange(32),
    "named": 31 - np.arange(32),
    "diverged": np.full(64, 2),
    "half_warp": np.arange(32) ^ 1,
    "copy": (np.arange(32) + 4) % 128,
    "global": np.arange(64),
    "shared_bytes": 31 - np.arange(32),
    "agreed": np.full(64, 3),
    "passed": 64 - np.arange(64),
    "agreed_global": np.full(64, 67),
    "source": np.arange(128) + 1,
    "completed": np.arange(1024),
    "counter": np.arange(64),
    "fences": np.full(128, 128.0),
    "handover": 31 - np.arange(32),
    "boxes": np.arange(1024) + 1,
}


@pytest.mark.parametrize("kernel", CLEAN)
@pytest.mark.parametrize(
    "options", [{}, {"schedule": "reverse"}, SHUFFLED | {"seed": 1}, SHUFFLED | {"seed": 2}], ids=str
)
def test_clean_kernel_is_right_and_silent(bench: Bench, kernel: str, options: dict[str, object]) -> None:
    outcome = launch(bench, kernel, 0, **options)
    assert outcome.findings == []
    assert outcome.status == 0
    if kernel == "fences":  # 64 x 128 x 16 of ones, two elements of it added
        np.testing.assert_array_equal(outcome.arrays[1][:128], np.full(128, 32.0))
    else:
        np.testing.assert_array_equal(outcome.arrays[1][: len(CLEAN[kernel])], CLEAN[kernel])


# kernel, fault, kind, anchors of the lines that findings of this kind must name
FAULTS = [
    ("block_sum", 1, "race: read -> write", {"sum_part", "sum_total"}),
    ("block_sum", 2, "uninitialised shared read", {"sum_total"}),
    ("block_sum", 3, "shared out-of-bounds", {"sum_out"}),
    ("warp_exchange", 1, "race: write -> read", {"exchange_write", "exchange_read"}),
    ("named", 1, "race: write -> read", {"named_write", "named_read"}),
    ("named", 2, "barrier count mismatch", {"named_arrive", "named_sync"}),
    ("diverged", 1, "divergent __syncthreads", {"diverged_then", "diverged_else"}),
    ("diverged", 2, "__syncthreads with exited threads", {"diverged_else"}),
    ("diverged", 3, "deadlock", {"diverged_stuck", "diverged_else"}),
    ("half_warp", 1, "deadlock", {"half_shuffle"}),
    ("copy", 1, "read of in-flight async copy", {"copy_issue", "copy_read"}),
    ("copy", 2, "cp.async never waited", {"copy_issue"}),
    ("copy", 3, "misaligned cp.async", {"copy_issue"}),
    ("global", 1, "global out-of-bounds", {"global_past"}),
    ("global", 2, "uninitialised global read", {"global_uninitialised"}),
    ("global", 3, "race between blocks", {"global_two_blocks"}),
    ("global", 4, "misaligned vector access", {"global_misaligned"}),
    ("bytes", 1, "race between blocks", {"bytes_write"}),
    ("shared_bytes", 1, "race: write -> write", {"shared_bytes_write", "shared_bytes_other"}),
    ("agreed", 1, "race: write -> write", {"agreed_write"}),
    ("passed", 1, "race: write -> read", {"passed_write", "passed_read"}),
    ("passed", 2, "race: read -> write", {"passed_read", "passed_again"}),
    ("passed", 3, "race: write -> write", {"passed_again"}),
    ("passed", 4, "race: write -> write", {"passed_again", "passed_atomic"}),
    ("agreed_global", 1, "race: write -> write", {"agreed_global_write"}),
    ("source", 1, "race: write -> read", {"source_copy", "source_own"}),
    ("source", 2, "race: write -> read", {"source_copy", "source_next"}),
    ("source", 3, "race: read -> write", {"source_copy", "source_late"}),
    ("completed", 1, "race: write -> read", {"completed_load", "completed_source"}),
    ("completed", 2, "read of in-flight async copy", {"completed_store", "completed_own"}),
    ("completed", 3, "write over in-flight async copy", {"completed_store", "completed_twice"}),
    ("completed", 4, "read of in-flight async copy", {"completed_store", "completed_read"}),
    ("counter", 2, "race: write -> read", {"counter_plain"}),
    ("fences", 1, "missing fence.proxy.async", {"fences_write_A", "fences_write_B", "fences_wgmma"}),
    ("fences", 2, "missing wgmma.fence", {"fences_wgmma"}),
    ("fences", 4, "missing fence.proxy.async", {"fences_write_B", "fences_wgmma"}),
    ("fences", 3, "wgmma accumulator modified in flight", {"fences_wgmma"}),
    ("handover", 1, "mbarrier used before init", {"handover_arrive", "handover_wait"}),
    ("handover", 3, "plain access to mbarrier", {"handover_plain", "handover_init"}),
    ("handover", 4, "deadlock", {"handover_wait"}),
    ("boxes", 1, "misaligned TMA column", {"boxes_load"}),
    ("boxes", 2, "TMA store at negative coordinates", {"boxes_store"}),
    ("boxes", 3, "missing fence.proxy.async", {"boxes_add", "boxes_store"}),
    ("boxes", 4, "TMA store never waited", {"boxes_store"}),
]


def readable(value: object) -> str:
    """A test id that is the same in every process, as parallel pytest needs: sets have no order."""
    return "+".join(sorted(value)) if isinstance(value, set) else str(value)


@pytest.mark.parametrize(("kernel", "fault", "kind", "anchors"), FAULTS, ids=readable)
def test_planted_fault(bench: Bench, kernel: str, fault: int, kind: str, anchors: set[str]) -> None:
    outcome = launch(bench, kernel, fault)
    bench.assert_found("micro", outcome, kind, anchors)
    assert outcome.status == ("deadlock" in outcome.kinds)


def test_missing_barrier_is_found_in_every_order(bench: Bench) -> None:
    for seed in range(3):
        kinds = launch(bench, "block_sum", 1, **SHUFFLED, seed=seed).kinds
        assert kinds & {"race: write -> read", "race: read -> write"}


def test_out_of_bounds_names_the_offset_and_the_distance(bench: Bench) -> None:
    (shared,) = launch(bench, "block_sum", 3).findings
    assert shared["shared_offset"] == 52
    assert "shared offset 52 by thread 255 (warp 7, lane 31)" in shared["message"]
    (past,) = (f for f in launch(bench, "global", 1).findings if f["kind"] == "global out-of-bounds")
    assert "0 bytes past the end of a 16384-byte allocation" in past["message"]


def test_deadlock_says_who_waits_where(bench: Bench) -> None:
    (deadlock,) = launch(bench, "diverged", 3).findings
    micro = bench.library("micro")
    assert "0 exited" in deadlock["message"]
    assert f"32 wait in __syncthreads at micro.cu:{micro.line('diverged_else')}" in deadlock["message"]
    assert f"32 wait in named barrier at micro.cu:{micro.line('diverged_stuck')}" in deadlock["message"]
    assert "thread 32 (warp 1, lane 0)" in deadlock["message"]


def test_a_launch_works_after_a_deadlock(bench: Bench) -> None:
    assert launch(bench, "diverged", 3).status == 1
    assert launch(bench, "block_sum", 0).findings == []


@pytest.mark.parametrize("check", [False, True])
def test_wild_access_abandons_the_launch_and_not_the_process(bench: Bench, check: bool) -> None:
    outcome = launch(bench, "wild", 1, check=check)
    (finding,) = outcome.findings
    assert outcome.status == 1
    assert finding["kind"] == "invalid address"
    assert "thread 3 (warp 0, lane 3) accesses the unmapped address 0x40" in finding["message"]
    assert outcome.lines("invalid address") == {bench.library("micro").line("wild_null")}
    assert launch(bench, "wild", 0).status == 0


def test_stack_overflow_is_a_finding(bench: Bench) -> None:
    outcome = launch(bench, "wild", 2)
    assert outcome.kinds == {"stack overflow"}
    assert outcome.status == 1


@pytest.mark.parametrize("check", [False, True])
def test_a_division_by_zero_abandons_the_launch_and_not_the_process(bench: Bench, check: bool) -> None:
    outcome = launch(bench, "wild", 3, check=check)
    (finding,) = outcome.findings
    assert (outcome.status, finding["kind"]) == (1, "integer division")
    assert "thread 3 (warp 0, lane 3) divides by zero" in finding["message"]
    assert outcome.lines("integer division") == {bench.library("micro").line("wild_zero")}
    assert launch(bench, "wild", 0).status == 0


def test_zero_fill_of_cp_async(bench: Bench) -> None:
    expected = np.where((np.arange(32) + 4) % 4 < 2, np.arange(32) + 4, 0)
    np.testing.assert_array_equal(launch(bench, "copy", 4).arrays[1][:32], expected)


def test_neighbouring_bytes_of_two_blocks_are_no_race(bench: Bench) -> None:
    outcome = launch(bench, "bytes", 0)
    assert outcome.findings == []
    np.testing.assert_array_equal(outcome.arrays[1].view(np.uint8)[:64], np.arange(64) % 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_atomics_of_all_blocks_add_up(bench: Bench, workers: int) -> None:
    outcome = launch(bench, "atomics", 0, out=np.zeros(64, np.float32), workers=workers)
    assert outcome.findings == []
    out = outcome.arrays[1]
    assert out[1] == 256
    assert out.view(np.int32)[2] == 256
    np.testing.assert_array_equal(out[32:33].view(np.float16), [128, 128])


def test_order_dependence_shows_under_shuffled_schedules(bench: Bench) -> None:
    """No data race, so the checker is silent; the numbers move."""
    runs = [launch(bench, "counter", 1, schedule="shuffle", seed=seed) for seed in range(4)]
    assert all(run.findings == [] for run in runs)
    assert len({run.arrays[1][:64].tobytes() for run in runs}) == 4


def test_a_seed_repeats_a_run(bench: Bench) -> None:
    first, second = (launch(bench, "counter", 1, **SHUFFLED, seed=5).arrays[1][:64] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_kernel_without_hooks_is_refused_when_checking(bench: Bench) -> None:
    memory = np.zeros(4096, np.float32)
    pointer = ctypes.c_void_p(memory.ctypes.data)
    with bench.engine.turn(EngineOptions(check=True)):
        status = bench.library("micro").fast.global_run(0, pointer, pointer)
        (finding,) = bench.engine.report()["findings"]
    assert status == 1
    assert finding["kind"] == "launch rejected"
    assert "-fsanitize=thread" in finding["message"]


# ---- wave64 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind", "anchors"),
    [
        (1, "read of in-flight async copy", {"lds_load", "lds_read"}),
        (2, "global_load_lds base not wave-uniform", {"lds_load"}),
    ],
)
def test_planted_fault_of_a_wave64_kernel(bench: Bench, fault: int, kind: str, anchors: set[str]) -> None:
    outcome = bench.launch("wave64", "load_lds_run", fault, np.arange(64, dtype=np.float32), OUT, check=True)
    bench.assert_found("wave64", outcome, kind, anchors)


def test_clean_wave64_kernel(bench: Bench) -> None:
    outcome = bench.launch("wave64", "load_lds_run", 0, np.arange(64, dtype=np.float32), OUT, check=True)
    assert outcome.findings == []
    np.testing.assert_array_equal(outcome.arrays[1][:64], 63 - np.arange(64))


@pytest.mark.parametrize(("swizzled", "banks", "ways"), [(0, 32, 1), (1, 32, 2), (0, 64, 1), (1, 64, 2)])
def test_reads_of_16_bytes_are_served_as_amd_does(bench: Bench, swizzled: int, banks: int, ways: int) -> None:
    """Lanes 0 to 3 with 20 to 23: a swizzle by the row brings together what lies in different banks without it."""
    data = [np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)]
    outcome = bench.launch("wave64", "read_b128_run", swizzled, *data, statistics=True, banks=banks)
    line = bench.library("wave64").line("read_b128")
    (read,) = (row for row in outcome.report["statistics"]["shared"] if row["place"]["line"] == line)
    assert (read["access"], read["worst_ways"], read["ideal"]) == ("read", ways, 256 // banks)


def test_reads_that_transpose(bench: Bench) -> None:
    """Four groups of 16 lanes, each with four rows of 16: lane l gets column l; addresses are multiples of 8."""
    data = np.arange(256, dtype=np.uint16)
    clean = bench.launch("wave64", "transposed_run", 0, data, np.zeros(256, np.uint16), check=True)
    assert clean.findings == []
    np.testing.assert_array_equal(clean.arrays[1].reshape(4, 16, 4), data.reshape(4, 4, 16).transpose(0, 2, 1))
    outcome = bench.launch("wave64", "transposed_run", 1, data, np.zeros(256, np.uint16), check=True)
    assert outcome.lines("misaligned ds_read_tr") == {bench.library("wave64").line("tr_read")}
