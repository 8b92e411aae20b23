"""The emitted texts on the CPU engine with every check on: right to NumPy, no finding, no bank conflict in a GEMM."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from cases import CASES, case_of
from comparison import on_cpu, rows_of
from prebuilt import Text, texts
from tile2cu_runtime import load_kernel

ROOT = Path(__file__).resolve().parents[2]
# Texts with fixed sizes are for sizes that a GPU likes: tests/gpu runs them.
SIZED = [text for text in texts(ROOT / "emitted/cuda/sm_80") if text.sizes]
IN_TEST_EXAMPLES = {"linear", "linear_int4", "linear_residual", "rmsnorm", "rope"}
TEXTS = [text for text in SIZED if text.manifest["kernel"] not in IN_TEST_EXAMPLES]
# With the binding of users: one that has a workspace, which the binding allocates, and one without.
BOUND = {bool(text.manifest["workspace"]): text.label for text in TEXTS}
SCHEDULES = ("round-robin", "reverse", "shuffle")


def test_every_family_of_kernels_is_there() -> None:
    """Of the cases some are of texts for sm_90a alone."""
    found = [case_of(text.manifest["kernel"]) for text in texts(ROOT / "emitted/cuda") if text.sizes]
    assert None not in found, "a kernel without a case in tools/cases.py"
    assert all(case in found for case in CASES.values())


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=text.label, marks=[pytest.mark.binding] * (text.label in BOUND.values())) for text in TEXTS],
)
def test_matches_numpy_without_a_finding(text: Text) -> None:
    """Each call runs the threads in the next of three orders; the engine finds races in any of them."""
    runners = itertools.cycle([on_cpu(text, (schedule,)) for schedule in SCHEDULES])
    rows = list(rows_of(text, lambda arrays, sizes: next(runners)(arrays, sizes)))
    assert rows
    assert not [row for row in rows if row.wrong]


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    "text", [text for text in TEXTS if "gemm_relu" in text.manifest["kernel"]], ids=lambda text: text.label
)
def test_operand_loads_have_no_bank_conflict(text: Text) -> None:
    kernel = load_kernel(text.path, device="cpu", statistics=True)
    sizes = {"M": 128, "N": 128, "K": 128}
    arrays = [np.ones(shape, np.float16) for shape in text.shapes(sizes)]
    kernel(*arrays)
    assert kernel.report is not None
    loads = [access for access in kernel.report.shared if access.access == "read"]
    assert loads
    assert [access for access in loads if not access.is_free_of_conflicts] == []
