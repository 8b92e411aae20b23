"""What the groups of a block all come to: the first one does what writes memory."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.analysis.groups import group_of
from tile2cu.core.decisions import INSTRUCTION
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.program import Fill, Gemm, If, walk_stmts

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
    launch = resolved(BY_ALL, threads=256).launch
    first, own, third, *_ = launch.body
    assert isinstance(first, If) and group_of(first) == 0
    assert [type(op) for op in first.then] == [Fill, Fill]
    assert isinstance(own, Fill) and isinstance(third, If) and len(third.then) == 1


WARPS_BEHIND_A_WARPGROUP = """
t = T.get_thread_binding()
S = T.alloc_shared((64, 64), "float16")
C = T.alloc_fragment((64, 64), "float32")
full = T.alloc_barrier(64)
if t < {first}:
    T.barrier_wait(full, 0)
    T.gemm(S, S, C, transpose_B=True, clear_accum=True)
    T.copy(C, X[0, 0])
elif t < {first} + 32:
    T.copy(Z[0, 0], S[0:32, 0:64])
    T.barrier_arrive(full)
else:
    T.copy(Z[32, 0], S[32:64, 0:64])
    T.barrier_arrive(full)
"""


@pytest.mark.parametrize(("first", "unit"), [(128, MmaUnit.WARPGROUP), (64, MmaUnit.WARP)])
def test_only_groups_that_multiply_are_whole_warpgroups(first: int, unit: MmaUnit) -> None:
    text = WARPS_BEHIND_A_WARPGROUP.format(first=first)
    context = resolved(text, threads=first + 64, target="cuda:sm_90a")
    (gemm,) = (stmt for stmt in walk_stmts(context.launch.body) if isinstance(stmt, Gemm))
    instruction = context.facts.get(gemm, INSTRUCTION)
    assert instruction is not None and instruction.unit is unit
    assert context.launch.sizes == (first, 32, 32)
