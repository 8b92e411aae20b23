"""What the groups of a block all come to: the first one does what writes memory."""

from tests.unit.rules.kernels import settled
from tile2cu.core.program import Fill, If, group_of

BY_ALL = """
S = T.alloc_shared((64, 64), "float16")
R = T.alloc_shared((64,), "float32")
L = T.alloc_fragment((64,), "float32")
T.fill(S, 1)
T.fill(R, 1)
T.fill(L, 1)
T.fill(R, 2)
with T.ws(0):
    T.copy(S, Y[bx * 64, 0])
with T.ws(1):
    T.copy(L, X[bx, 0])
"""


def test_neighbours_are_done_by_the_first_group_in_one_branch() -> None:
    launch = settled(BY_ALL, threads=256).launch
    first, own, third, *_ = launch.body
    assert isinstance(first, If) and group_of(first) == 0
    assert [type(op) for op in first.then] == [Fill, Fill]
    assert isinstance(own, Fill) and isinstance(third, If) and len(third.then) == 1
