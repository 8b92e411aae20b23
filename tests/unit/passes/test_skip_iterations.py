"""Pipelined loops that work in one branch: their iterations are skipped where nothing in the branch leaves the loop."""

import pytest

from tests.unit.passes.launches import launch_of
from tile2cu.passes.skip_iterations import skipped_iterations

KERNEL = """
S = T.alloc_shared((64, 64), "float16")
C = T.alloc_fragment((64, 64), "float32")
T.clear(C)
for k in T.Pipelined(4, num_stages=2):
    if Counts[k] != 0:
        T.copy(H[k * 64, 0], S)
        {statement}
        T.gemm(S, S, C, transpose_B=True)
T.copy(C, B[0, 0])
"""


@pytest.mark.parametrize(
    ("statement", "skips"),
    [
        ("T.sync_threads()", True),
        ("for u in T.serial(4):\n            if u == n:\n                break", True),  # another loop
        ("if k == n:\n            break", False),
        ("if k == n:\n            continue", False),
    ],
)
def test_a_branch_that_leaves_the_loop_stays_in_it(statement: str, skips: bool) -> None:
    launch = launch_of(KERNEL.format(statement=statement))
    assert (skipped_iterations(launch) is not None) == skips
