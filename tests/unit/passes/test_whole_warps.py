"""Blocks of a part of a wave on AMD: which are rounded up to whole waves."""

import pytest

from tests.unit.passes.launches import launch_of
from tile2cu.passes.whole_warps import in_whole_warps

REDUCTION = """
F = T.alloc_fragment((32, 64), "float32")
S = T.alloc_fragment((32,), "float32")
T.copy(A[0, 0], F)
T.reduce_sum(F, S, dim=1)
"""
REDUCER = """
S = T.alloc_reducer((1,), "float32", replication="all")
T.clear(S)
for j in T.Parallel(64):
    S[0] += A[bx, j]
T.finalize_reducer(S)
"""
STAGED = """
tile = T.alloc_shared((32, 64), "float32")
T.async_copy(A[0:32, 0:64], tile)
T.ptx_commit_group()
T.ptx_wait_group(0)
"""


@pytest.mark.parametrize("statements", [REDUCTION, REDUCER, STAGED + REDUCTION])
@pytest.mark.parametrize("threads", [32, 96])
def test_threads_are_rounded_up(statements: str, threads: int) -> None:
    launch = in_whole_warps(launch_of(statements, threads=threads), 64)
    assert launch is not None and launch.threads == -(-threads // 64) * 64
    assert f"where the source asks for {threads}" in launch.comments[-1]


@pytest.mark.parametrize(
    "statements",
    [
        "B[bx, 0] = A[bx, 0]",  # nothing needs whole waves
        REDUCTION + "T.atomic_add(Counts[0], 1)",  # by each thread
        REDUCTION + "if T.get_thread_binding() < 8:\n    B[bx, 0] = 1",
        REDUCTION + "T.sync_warp()",
    ],
)
def test_threads_that_differ_are_kept(statements: str) -> None:
    assert in_whole_warps(launch_of(statements, threads=32), 64) is None
    assert in_whole_warps(launch_of(REDUCTION, threads=128), 64) is None
