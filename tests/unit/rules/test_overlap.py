"""Which loops with two MMAs overlap their iterations, and what waits for the second MMA."""

import pytest

from tests.unit.rules.kernels import settled
from tile2cu.core.decisions import SCHEDULE
from tile2cu.core.program import Loop
from tile2cu.core.schedule import MmaOverlap

ATTENTION = """
Q_shared = T.alloc_shared((128, 64), "float16")
K_shared = T.alloc_shared((64, 64), "float16")
V_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((128, 64), "float32")
P = T.alloc_fragment((128, 64), "float16")
O = T.alloc_fragment((128, 64), "float32")
O_view = T.view(O, (128, 4, 16))
rows = T.alloc_fragment((128,), "float32")
total = T.alloc_fragment((128,), "float32")
s = T.alloc_var("float32", 1.0)
T.copy(Z[0, 0], Q_shared)
T.clear(O)
T.clear(total)
for k in T.Pipelined(4, num_stages=2):
    {first}
    T.copy(Z[k * 64, 0], K_shared)
    T.copy(Z[k * 64, 64], V_shared)
    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
    {between}
    T.copy(S, P)
    T.gemm(P, V_shared, O)
    {after}
T.copy(O, Z[0, 0])
"""
SCALE = "for i, j in T.Parallel(128, 64):\n        O[i, j] = O[i, j] * s\n"
SCALE_VIEW = "for i, g, j in T.Parallel(128, 4, 16):\n        O_view[i, g, j] = O_view[i, g, j] * 0.5\n"
ADD_UP = "T.reduce_sum(S, rows, dim=1)\n    for i in T.Parallel(128):\n        total[i] += rows[i]\n"
MASK = "for i, j in T.Parallel(128, 64):\n        S[i, j] = T.if_then_else(start + j < m, S[i, j], 0)\n"


def overlap_of(first: str = "", between: str = "", after: str = "") -> MmaOverlap | None:
    body = ATTENTION.format(first=first, between=between, after=after)
    context = settled(body, threads=256, target="cuda:sm_90a")
    (found,) = (context.facts.get(op, SCHEDULE) for op in context.statements if isinstance(op, Loop))
    return found if isinstance(found, MmaOverlap) else None


def lines(found: MmaOverlap, part: str) -> list[int]:
    return [op.span.line for op in getattr(found, part)]


@pytest.mark.parametrize("scale", [SCALE, SCALE_VIEW], ids=["the accumulator", "a view of it"])
def test_what_touches_the_accumulator_waits_for_its_mma(scale: str) -> None:
    found = overlap_of(between=scale)
    assert found is not None and found.between == () and len(found.late) == 2


def test_what_depends_on_something_that_waits_does_too() -> None:
    found = overlap_of(between=SCALE + "    s = s * 0.5")
    assert found is not None and found.between == ()
    assert len(found.late) == 3, "the scale, the assignment to what it reads, the copy to the operand"


def test_statements_behind_the_second_mma_come_before_it() -> None:
    found = overlap_of(after=ADD_UP)
    assert found is not None and len(found.between) == 2 and len(found.late) == 1


@pytest.mark.parametrize("after", [SCALE, SCALE_VIEW, "T.clear(P)"], ids=["accumulator", "view", "operand"])
def test_nothing_overlaps_where_a_statement_behind_the_second_mma_needs_it(after: str) -> None:
    assert overlap_of(after=after) is None


def test_each_part_has_the_values_that_it_names() -> None:
    found = overlap_of(first="start = k * 64", between=MASK)
    assert found is not None and [let.var.name for let in found.lets] == ["start"]


def test_values_from_memory_are_not_named_twice() -> None:
    assert overlap_of(first="start = T.cast(X[k, 0], 'int32')", between=MASK) is None
