"""Which loops with two MMAs overlap their iterations, and what waits for the second MMA."""

import pytest

from tests.unit.rules.kernels import resolved
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
    context = resolved(body, threads=256, target="cuda:sm_90a")
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


GROUPS = """
Q_shared = T.alloc_shared((64, {cols}), "float16")
G_shared = T.alloc_shared((64, {cols}), "float16")
K_shared = T.alloc_shared((64, {cols}), "float16")
V_shared = T.alloc_shared((64, {cols}), "float16")
scale = T.alloc_shared((64,), "float32")
S = T.alloc_fragment((64, 64), "float32")
dP = T.alloc_fragment((64, 64), "float32")
dS = T.alloc_fragment((64, 64), "float16")
dQ = T.alloc_fragment((64, {cols}), "float32")
T.copy(Z[0, 0], Q_shared)
T.copy(Z[64, 0], G_shared)
T.fill(scale, 0.5)
T.clear(dQ)
for k in T.Pipelined(4, num_stages={stages}):
    T.copy(Z[k * 64, 0], K_shared)
    T.copy(Z[k * 64, 0], V_shared)
    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
    for i, j in T.Parallel(64, 64):
        S[i, j] *= scale[i]
    {between}
    T.gemm(G_shared, V_shared, dP, transpose_B=True, clear_accum=True)
    for i, j in T.Parallel(64, 64):
        dS[i, j] = S[i, j] * dP[i, j]
    T.gemm(dS, K_shared, dQ)
T.copy(dQ, Z[0, 0])
"""


@pytest.mark.parametrize(
    ("cols", "stages", "between", "expected"),
    [
        (128, 3, "", "S, dP concurrent with dQ of the previous iteration"),
        (128, 2, "", ""),  # K_shared is in use in two iterations, which leaves no stage for a load
        (64, 3, "", ""),  # several blocks per SM
        (128, 3, "scale[0] = 1.0", ""),  # it is written in the loop, behind a barrier
        (128, 3, "scale[0] = K_shared[0, 0]", ""),  # a loaded tile is read by other statements
    ],
)
def test_groups_of_mmas(cols: int, stages: int, between: str, expected: str) -> None:
    body = GROUPS.format(cols=cols, stages=stages, between=between)
    context = resolved(body, threads=128, target="cuda:sm_90a")
    (found,) = (context.facts.get(op, SCHEDULE) for op in context.statements if isinstance(op, Loop))
    assert str(found or "") == expected
    if isinstance(found, MmaOverlap):
        assert [len(part) for part in found.parts] == [1, 0] and len(found.late) == 1
        order = [
            (step.stmt.span.line, step.action.value, step.shift) for step in found.steps if step.stmt in found.mmas
        ]
        first, other, last = (mma.span.line for mma in found.mmas)
        assert order[:3] == [(first, "start", 0), (other, "start", 0), (last, "start", 1)]
        assert order[3:] == [(first, "wait", 0), (other, "wait", 0), (last, "wait", 1)]


@pytest.mark.parametrize(("loads", "stages", "overlaps"), [("KV", 1, True), ("VK", 1, False), ("VK", 2, True)], ids=str)
def test_one_stage_is_loaded_in_the_order_of_the_mmas(loads: str, stages: int, overlaps: bool) -> None:
    """With one stage the producer waits for the second MMA, which starts after the next iteration's first."""
    body = ATTENTION.format(first="", between="", after="").replace("num_stages=2", f"num_stages={stages}")
    lines = {"K": "    T.copy(Z[k * 64, 0], K_shared)\n", "V": "    T.copy(Z[k * 64, 64], V_shared)\n"}
    body = body.replace(lines["K"] + lines["V"], "".join(lines[tile] for tile in loads))
    context = resolved(body, threads=256, target="cuda:sm_90a")
    (found,) = (context.facts.get(op, SCHEDULE) for op in context.statements if isinstance(op, Loop))
    assert isinstance(found, MmaOverlap) == overlaps


def test_a_loop_inside_another_overlaps() -> None:
    head, loop = ATTENTION.format(first="", between="", after="").split("T.copy(Z[0, 0], Q_shared)\n")
    inside = "".join(f"    {line}\n" for line in loop.splitlines())
    body = f"{head}T.copy(Z[0, 0], Q_shared)\nfor tile in T.serial(3):\n{inside}".replace(
        "T.copy(O, Z[", "T.copy(O, Y["
    )
    context = resolved(body, threads=256, target="cuda:sm_90a")
    found = [context.facts.get(op, SCHEDULE) for op in context.statements if isinstance(op, Loop)]
    assert [isinstance(each, MmaOverlap) for each in found] == [False, True]
