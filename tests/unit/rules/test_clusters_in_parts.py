"""Blocks of a cluster with a producer warp each, which exchange their sums: who waits, and which memory is reused."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import ALIASING, EXIT_BARRIER, WARP_SPECIALISED
from tile2cu.rules import Context

PARTS = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, {columns}), "float16")
C_local = T.alloc_fragment((64, {columns}), "float32")
C_part = T.alloc_shared((64, {columns}), "float32")
C_all = T.alloc_shared((64, {columns}), "float32")
{before}
T.clear(C_local)
for k in T.Pipelined(64, num_stages=3):
    T.copy(Z[0, k * 64], A_shared)
    T.copy(Z[k * 64, bx * {columns}], B_shared)
    T.gemm(A_shared, B_shared, C_local)
    {inside}
T.copy(C_local, C_part)
{between}
T.copy_cluster(C_part[0:32, :], C_all[0:32, :], dst_block=1)
{after}
T.copy(C_all, C_local)
T.copy(C_local, Y[0, bx * {columns}])
"""


def of(columns: int = 64, before: str = "", inside: str = "", between: str = "", after: str = "") -> Context:
    text = PARTS.format(columns=columns, before=before, inside=inside, between=between, after=after)
    return resolved(text, target="cuda:sm_90a", cluster=2)


def producer(context: Context) -> str:
    """Why there is no producer warp; empty if there is one."""
    return context.facts[context.launch, WARP_SPECIALISED].because


def test_a_producer_has_exited_before_the_clusters_barriers() -> None:
    assert producer(of(between="T.cluster_sync()", after="T.cluster_sync()")) == ""
    assert "line" in producer(of(before="T.cluster_sync()", after="T.cluster_sync()"))
    assert "line" in producer(of(inside="T.cluster_sync()"))


def test_loads_by_threads_leave_no_producer() -> None:
    text = PARTS.format(columns=64, before="", inside="", between="", after="T.cluster_sync()")
    context = resolved(text.replace("], B_shared)", "], B_shared, disable_tma=True)"), target="cuda:sm_90a", cluster=2)
    assert "disable_tma=True" in producer(context)


@pytest.mark.parametrize(("after", "ends"), [("T.cluster_sync()", None), ("", True)])
def test_a_barrier_below_the_last_exchange_is_enough(after: str, ends: bool | None) -> None:
    assert of(between="T.cluster_sync()", after=after).facts.get(of().launch, EXIT_BARRIER) is None
    context = of(between="T.cluster_sync()", after=after)
    assert context.facts.get(context.launch, EXIT_BARRIER) is ends


def test_other_blocks_write_only_memory_that_a_barrier_has_freed() -> None:
    """Operands and sums together do not fit."""
    freed = of(columns=256, between="T.cluster_sync()", after="T.cluster_sync()")
    aliasing = freed.facts[freed.launch, ALIASING]
    assert [part.tiles for part in aliasing.parts] == [("A_shared", "B_shared"), ("C_part", "C_all")]
    early = of(columns=192, after="T.cluster_sync()")  # C_part may take the operands' memory, C_all not
    found = early.facts.get(early.launch, ALIASING)
    assert found is None or all("C_all" not in part.tiles for part in found.parts)
