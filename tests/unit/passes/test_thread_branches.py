"""Branches on the thread: counters of a group of threads are the same in all of it."""

import pytest

from tests.unit.passes.launches import launch_of
from tile2cu.core.errors import Tile2CuError
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
