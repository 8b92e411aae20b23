"""Branches on the thread: counters of a group of threads are the same in all of it."""

import pytest

from tests.unit.passes.launches import launch_of
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Copy
from tile2cu.passes.thread_branches import by_thread

KERNEL = """
S = T.alloc_shared((64, 64), "float32")
tx = T.get_thread_binding()
c = T.alloc_var("int32", 0)
T.copy(A[0, 0], S)
{above}
{branch}:
    for k in T.serial(6):
        if c > n:
            for i, j in T.Parallel(64, 64):
                S[i, j] = S[i, j] * 2
        c = c + 1
T.copy(S, B[0, 0])
"""
BRANCHES = pytest.mark.parametrize("branch", ["with T.ws(1)", "if tx >= 128"])


@BRANCHES
@pytest.mark.parametrize("above", ["", "with T.ws(0):\n    c = 5", "with T.ws(0, 1):\n    c = 5", "c = c + n"])
def test_a_counter_of_a_group_decides_about_tiles(above: str, branch: str) -> None:
    launch = by_thread(launch_of(KERNEL.format(above=above, branch=branch), threads=256), groups=True)
    assert launch.groups == 2 or (above.startswith("with T.ws(0, 1)") and launch.groups == 1)


@BRANCHES
@pytest.mark.parametrize("above", ["c = tx", "if tx < 192:\n    c = 5", "if A[tx, 0] > 0:\n    c = 5"])
def test_values_of_single_threads_do_not(above: str, branch: str) -> None:
    launch = launch_of(KERNEL.format(above=above, branch=branch), threads=256)
    with pytest.raises(Tile2CuError) as raised:
        by_thread(launch, groups=True)
    assert raised.value.code == "T2C-P004"


BY_ALL = """
S = T.alloc_shared((64, 64), "float32")
tx = T.get_thread_binding()
v = T.alloc_var("int32", 0)
if tx < 64:
    {statement}
    T.copy(A[0, 0], S)
T.copy(S, B[0, 0])
"""


@pytest.mark.parametrize(
    "statement",
    [
        "B[tx, 0] = 1.0",
        "for k in T.serial(4):\n        if tx == k:\n            break\n        B[tx, k] = 1.0",
        "v = T.shfl_sync(tx, 0)\n    B[tx, 0] = v",
    ],
)
def test_all_threads_do_what_some_come_to_with_statements_of_their_own(statement: str) -> None:
    launch = by_thread(launch_of(BY_ALL.format(statement=statement)), groups=False)
    (copy, _) = (stmt for stmt in launch.body if isinstance(stmt, Copy))
    assert copy.dst.buffer.name == "S"


@pytest.mark.parametrize(
    "statement",
    [
        "T.sync_threads()",
        "while T.atomic_load(Counts[0], memory_order='relaxed') == 0:\n        v = v + 1",
        "T.atomic_add(Counts[0], 1, memory_order='release')",
        "v = T.atomic_load(Counts[0], memory_order='acquire')",
        "T.fence_proxy_async()",
        "T.pdl_sync()",
    ],
)
def test_a_statement_that_orders_threads_keeps_them_together(statement: str) -> None:
    with pytest.raises(Tile2CuError) as raised:
        by_thread(launch_of(BY_ALL.format(statement=statement)), groups=False)
    assert raised.value.code == "T2C-P004"
