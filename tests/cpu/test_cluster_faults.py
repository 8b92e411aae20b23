"""Two clusters of two blocks, clean and with one fault each: kind and lines of what the checker says."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_under_test import SCHEDULES, Bench, Outcome, Uninitialised

TURNS = 3


def launch(bench: Bench, fault: int, **options: object) -> tuple[Outcome, list[np.ndarray]]:
    """Gives the outcome, and what the three outputs have to be."""
    tensor = np.random.default_rng(0).integers(0, 1000, (TURNS * 16, 64)).astype(np.float16)
    outputs = (((4, TURNS, 16, 64), np.float16), ((4, 16, 64), np.float16), ((4, 128), np.int32))
    empty = [Uninitialised(shape, np.dtype(dtype)) for shape, dtype in outputs]
    outcome = bench.launch("cluster", "cluster_run", fault, tensor, *empty, **{"check": True, **options})
    other = np.arange(4) % 2 ^ 1
    loaded = np.broadcast_to(tensor.reshape(TURNS, 16, 64), (4, TURNS, 16, 64))
    handed = (np.arange(16 * 64) % 50).reshape(16, 64) + other[:, None, None]
    return outcome, [loaded, handed, 10 * np.arange(128) + other[:, None]]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("check", [False, True], ids=["fast", "check"])
def test_clean_kernel_is_right_and_silent(bench: Bench, schedule: dict[str, object], check: bool) -> None:
    outcome, expected = launch(bench, 0, **{**schedule, "check": check})
    assert outcome.findings == []
    assert outcome.status == 0
    for array, values in zip(outcome.arrays[1:], expected, strict=True):
        np.testing.assert_array_equal(array.astype(np.float64), values)


ENDED = "shared memory of an exited block"
# fault number, kind, anchors of the lines that the findings of this kind must name
FAULTS = {
    "initialised_for_the_block": (1, "mbarrier init not visible", {"initialised", "load"}),
    "read_without_barrier": (2, "uninitialised shared read", {"exchange"}),
    "relaxed_arrival": (3, "race: write -> read", {"number", "exchange"}),
    "overwritten_while_read": (4, "race: read -> write", {"use", "load"}),
    "ended_while_read": (5, ENDED, {"late", "handed"}),
    "arrival_at_the_end": (6, ENDED, {"late_arrival", "handed"}),
    "copied_without_fence": (7, "missing fence.proxy.async", {"mine", "unfenced"}),
    "source_overwritten": (8, "race: read -> write", {"handed", "overwritten"}),
    "copied_to_an_ended_block": (9, ENDED, {"handed"}),
    "mask_without_a_block": (10, "deadlock", {"turn", "loaded"}),
    "mask_with_a_block_more": (11, "read of in-flight async copy", {"use", "masked"}),
    "block_of_no_cluster": (12, "invalid cluster address", {"exchange"}),
    "mask_of_no_cluster": (13, "invalid cluster address", {"load"}),
    "arrived_twice": (14, "cluster arrival without a wait", {"twice"}),
    "waited_without_arrival": (15, "cluster wait without an arrival", {"unarrived"}),
    "one_block_at_the_barrier": (16, "deadlock", {"wait", "elsewhere"}),
    "announced_too_few": (17, "deadlock", {"loaded"}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault(bench: Bench, name: str) -> None:
    fault, kind, anchors = FAULTS[name]
    outcome, _ = launch(bench, fault)
    bench.assert_found("cluster", outcome, kind, anchors)


# where only the order decides what goes wrong first, one kind of several
IN_EVERY_ORDER = {
    "read_without_barrier": {"uninitialised shared read", "race: write -> read"},
    "relaxed_arrival": {"race: write -> read"},
    "overwritten_while_read": {"race: read -> write"},
    "ended_while_read": {ENDED},
    "arrival_at_the_end": {ENDED},
    "source_overwritten": {"race: read -> write"},
}


@pytest.mark.parametrize("name", IN_EVERY_ORDER)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_what_the_numbers_do_not_show_is_found_in_every_order(
    bench: Bench, name: str, schedule: dict[str, object]
) -> None:
    assert launch(bench, FAULTS[name][0], **schedule)[0].kinds & IN_EVERY_ORDER[name]


def test_a_finding_names_the_blocks(bench: Bench) -> None:
    outcome, _ = launch(bench, FAULTS["relaxed_arrival"][0])
    (finding,) = [f for f in outcome.findings if f["kind"] == "race: write -> read"]
    assert "of block 0" in finding["message"] and "of block 1" in finding["message"]
