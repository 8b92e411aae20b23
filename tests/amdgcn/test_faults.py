"""Planted faults are found with their kind and place; their twins are silent."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.amdgcn.build import KERNELS, compile_hip
from tile2cu_runtime.amdgcn import CodeObject, CodePlace, Result, simulate

SOURCE = KERNELS / "faults.hip"
THREADS = 256
FAULTS = {
    "no_barrier": "lds-race",
    "no_second_barrier": "lds-race",
    "vote_of_one_barrier": "lds-race",
    "write_write": "lds-race",
    "store_outside": "out-of-bounds",
    "load_outside": "out-of-bounds",
    "load_before": "out-of-bounds",
    "lds_outside": "lds-out-of-bounds",
    "lds_uninitialized": "lds-uninitialized",
    "load_not_awaited": "missing-waitcnt",
    "dma_not_awaited": "lds-uninitialized lds-race",
    "lds_write_not_awaited": "lds-race",
}
CLEAN = ("reverse", "load_awaited", "dma_awaited", "lds_write_awaited")


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> CodeObject:
    return CodeObject.load(compile_hip(SOURCE, "gfx942", tmp_path_factory.mktemp("faults")))


def launch(code: CodeObject, kernel: str) -> tuple[Result, np.ndarray]:
    a, c = np.arange(THREADS, dtype=np.float32), np.zeros(THREADS, np.float32)
    return simulate(code, kernel, 1, THREADS, [a, c]), c


def marked_lines(kernel: str, end: str) -> set[int]:
    """The lines of the source that are marked as this end of a kernel's fault."""
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if re.search(rf"// {kernel}:.*\b{end}\b", line)}


@pytest.mark.parametrize("kernel", FAULTS)
def test_fault_is_found_at_its_line(code: CodeObject, kernel: str) -> None:
    result, _ = launch(code, kernel)
    finding = result.findings[0]
    assert {each.kind for each in result.findings} == set(FAULTS[kernel].split()), [
        str(each) for each in result.findings
    ]
    assert (finding.kernel, finding.workgroup) == (kernel, (0, 0, 0))
    assert lines_of(finding.place) <= marked_lines(kernel, "first") | marked_lines(kernel, "other")
    if marked := marked_lines(kernel, "other"):
        assert finding.other is not None and lines_of(finding.other) <= marked | marked_lines(kernel, "first")
        assert lines_of(finding.place) | lines_of(finding.other) >= marked


def lines_of(place: CodePlace) -> set[int]:
    assert Path(place.file).name == SOURCE.name
    return {place.line}


@pytest.mark.parametrize("kernel", CLEAN)
def test_twin_is_silent_and_right(code: CodeObject, kernel: str) -> None:
    result, c = launch(code, kernel)
    assert not result.findings, [str(each) for each in result.findings]
    np.testing.assert_array_equal(c, np.arange(THREADS, dtype=np.float32)[::-1])


def test_out_of_bounds_names_lane_and_buffer(code: CodeObject) -> None:
    (finding,) = launch(code, "store_outside")[0].findings
    assert (finding.wave, finding.lane, finding.count) == (3, 63, 1)
    assert finding.message == "4 bytes at byte 1024 of argument 1, which has 1024"
    assert finding.place.instruction.startswith("global_store_dword")


def test_missing_wait_names_the_load(code: CodeObject) -> None:
    (finding,) = launch(code, "load_not_awaited")[0].findings
    assert finding.other is not None and finding.other.instruction.startswith("global_load_dword")
    assert "vmcnt" in finding.message


def test_without_checks_only_bounds_are_reported(code: CodeObject) -> None:
    a, c = np.arange(THREADS, dtype=np.float32), np.zeros(THREADS, np.float32)
    assert simulate(code, "no_barrier", 1, THREADS, [a, c], check=False).is_clean
    assert not simulate(code, "store_outside", 1, THREADS, [a, c], check=False).is_clean
