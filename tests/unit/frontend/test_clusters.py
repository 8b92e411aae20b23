"""Clusters: what a kernel says of them, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Copy, Program
from tile2cu.frontend import programs

TEXT = """
import tilelang.language as T


@T.prim_func
def kernel(A: T.Tensor((128, 64), "float16")):
    with T.{kernel} as {names}:
        S = T.alloc_shared((128, 64), "float16")
        D = T.alloc_shared((128, 64), "float16")
        P = T.alloc_shared((2, 128, 64), "float16")
        own = T.alloc_barrier(128)
        there = T.alloc_cluster_barrier(128)
        {statement}
"""
PLAIN = "Kernel(4, 2, cluster_dims={})"


@pytest.fixture
def traced() -> Callable[..., Program]:
    def trace(statement: str = "pass", kernel: str = PLAIN.format(2), names: str = "(bx, by)") -> Program:
        text = TEXT.format(kernel=kernel, names=names, statement=statement)
        (program,) = programs(Path("k.py"), text, kernel=None, bindings={})
        return program

    return trace


@pytest.mark.parametrize(
    ("dims", "cluster"),
    [("2", (2, 1, 1)), ("(2,)", (2, 1, 1)), ("[2, 2]", (2, 2, 1)), ("(4, 2, 1)", (4, 2, 1)), ("1", ()), ("None", ())],
)
def test_dims(traced: Callable[..., Program], dims: str, cluster: tuple[int, ...]) -> None:
    for kernel in (PLAIN, PLAIN.replace("Kernel", "ClusterKernel")):
        assert traced(kernel=kernel.format(dims)).launches[0].cluster == cluster


REFUSED = {
    "Kernel(4, 2, cluster_dims=(4, 4))": "a cluster of 16 blocks; it has at most 8",
    "Kernel(4, 2, cluster_dims=(1, 1, 2))": "the grid has 1 blocks along z, which are no clusters of 2",
    "Kernel(4, 2, cluster_dims=(1, 1, 1, 1))": "`cluster_dims` has one to three extents, not 4",
}
STATEMENTS = {
    "T.copy_cluster(S, D)": "takes either `dst_block`, or `cluster_mask`",
    "T.copy_cluster(S, D, dst_block=0, cluster_mask=1)": "takes either `dst_block`, or `cluster_mask`",
    "T.copy_cluster(S, D, dst_block=2)": "`dst_block` of T.copy_cluster is 2; the cluster has 2 blocks",
    "T.copy_cluster(A, D, dst_block=1)": "T.copy_cluster to another block from `A`, a tensor in global memory to `D`",
    "T.copy_cluster(P, P, dst_block=1)": "T.copy_cluster to another block from `P`",
    "T.copy_cluster(S, D, cluster_mask=3)": "loads from a tensor to a shared tile",
    "T.copy_cluster(A, D, cluster_mask=0b101)": "0b101, names block 2 of a cluster of 2",
    "T.tma_copy(A, D, barrier=own, cluster_mask=4)": "0b100, names block 2 of a cluster of 2",
    "T.mbarrier_arrive(own, 1)": "`own` is a barrier of one block, at which no other one arrives",
    "T.mbarrier_arrive(there, 2)": "the block of T.mbarrier_arrive is 2; the cluster has 2 blocks",
    "T.sync_grid()": "T.sync_grid in a kernel of clusters is not supported yet",
}


@pytest.mark.parametrize("kernel", REFUSED)
def test_clusters_that_are_refused(traced: Callable[..., Program], kernel: str) -> None:
    with pytest.raises(Tile2CuError) as refused:
        traced(kernel=kernel)
    assert refused.value.code == "T2C-F025" and REFUSED[kernel] in str(refused.value)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_that_are_refused(traced: Callable[..., Program], statement: str) -> None:
    with pytest.raises(Tile2CuError) as refused:
        traced(statement)
    assert STATEMENTS[statement] in str(refused.value)


def test_copies(traced: Callable[..., Program]) -> None:
    def only(statement: str) -> Copy:
        (copy,) = (op for op in traced(statement).launches[0].body if isinstance(op, Copy))
        return copy

    shared = only("T.copy_cluster(A, D, cluster_mask=0b11)")
    assert (shared.blocks, shared.awaited) == (0b11, True)
    assert shared.barrier is not None and shared.barrier.buffer.arrivals == (128,)  # type: ignore[attr-defined]
    assert only("T.tma_copy(A, D, barrier=own, cluster_mask=2)").blocks == 0b10
    sent = only("T.copy_cluster(S, D, dst_block=by, remote_barrier=there)")
    assert sent.block is not None and sent.remote is not None and sent.barrier is None


def test_a_block_alone_loads_for_itself(traced: Callable[..., Program]) -> None:
    program = traced("T.tma_copy(A, D, barrier=own, cluster_mask=1)", kernel="Kernel(4, 2)")
    assert [op.blocks for op in program.launches[0].body if isinstance(op, Copy)] == [0]
