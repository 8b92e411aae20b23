"""The engine finds races in global memory between threads of a block, with the line of the Python source."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel

TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")

SHIFTED = """
        for i, j in T.Parallel(128, 32):
            W[(i + n) % 128, j] = W[i, j] + A[i, j]  # races
        for i, j in T.Parallel(128, 32):
            C[i, j] = A[i, j]
"""
SCATTERED = """
        for i, j in T.Parallel(128, 32):
            C[i, j] = 0
        for i, j in T.Parallel(128, 32):
            C[i // (n + 1), j] = {value}  # races
"""


def kernel(folder: Path, target: str, body: str) -> Kernel:
    tensors = "A: T.Tensor((128, 32), 'float32'), W: T.Tensor((128, 32), 'float32'), n: T.int32"
    return load_body(folder, body, f"{tensors}, C: T.Tensor((128, 32), 'float32')", target=target, threads=128)


def run(small: Kernel, n: int) -> None:
    values = np.arange(128 * 32, dtype=np.float32).reshape(128, 32)
    small(values, values.copy(), n)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (SHIFTED, {"race: write -> read", "race: read -> write"}),
        (SCATTERED.format(value="A[i, j]"), {"race: write -> write"}),
    ],
)
def test_a_race_between_iterations_of_a_loop_is_reported(
    body: str, kinds: set[str], target: str, tmp_path: Path
) -> None:
    small = kernel(tmp_path, target, body)
    run(small, 0)
    with pytest.raises(CheckError) as found:
        run(small, 1)
    assert {finding.kind for finding in found.value.report.findings} == kinds
    assert "# races" in str(found.value), "the line of the accesses is shown"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_threads_that_store_the_same_value_do_not_race(target: str, tmp_path: Path) -> None:
    run(kernel(tmp_path, target, SCATTERED.format(value="1.0")), 1)
