"""Schedules that prefetch are legal where they keep the dependences of the loop."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.analysis.legality import why_no_pipeline, why_not
from tile2cu.analysis.uses import statements
from tile2cu.core.program import Copy, Loop
from tile2cu.core.schedule import InOrder, Pipeline

KERNEL = """
A_shared = T.alloc_shared((64, 64), "float16")
row = T.alloc_shared((64,), "float32")
C_local = T.alloc_fragment((64, 64), "float32")
at = T.alloc_var("int32", init=0)
T.clear(C_local)
for k in T.serial(4):
    T.copy(Z[{place}, 0], A_shared)
    T.copy(A[k * 64, 0], row)
    T.gemm(A_shared, A_shared, C_local)
    for i, j in T.Parallel(64, 64):
        C_local[i, j] += row[j]
    {last}
T.copy(C_local, X[0, 0])
"""


def loop_of(last: str = "", place: str = "k * 64") -> Loop:
    body = KERNEL.format(last=last, place=place)
    context = resolved("\n".join(line for line in body.splitlines() if line.strip()), target="cuda:sm_80")
    (loop,) = (loop for loop in statements(context.launch.body, Loop) if loop.var.name == "k")
    return loop


def pipeline_of(loop: Loop, stages: int, *, producer: bool) -> Pipeline:
    load = next(stmt for stmt in loop.body if isinstance(stmt, Copy) and stmt.dst.buffer.name == "A_shared")
    return Pipeline(stages, (load,), tuple(stmt for stmt in loop.body if stmt is not load), producer=producer)


@pytest.mark.parametrize("producer", [False, True])
@pytest.mark.parametrize(
    ("parts", "broken"),
    [
        ({}, ""),
        ({"place": "(k + bx) * 64"}, ""),
        ({"last": "T.sync_threads()"}, ""),
        ({"last": "if at > 2:\n        break"}, ""),
        ({"last": "T.copy(A_shared, Z[(k + 1) * 64, 0])"}, "read after write of `Z`"),
        ({"last": "at = at + 1", "place": "at * 64"}, "read after write of `at`"),
        ({"last": "T.fill(A_shared, 0.0)"}, ""),
    ],
    ids=str,
)
def test_loads_ahead_keep_dependences(parts: dict[str, str], broken: str, producer: bool) -> None:
    loop = loop_of(**parts)
    found = why_no_pipeline(pipeline_of(loop, 3, producer=producer), loop)
    assert (broken in found) if broken else found == ""


def test_loads_of_the_same_iteration_may_read_what_the_last_one_wrote() -> None:
    """With one stage and no producer nothing runs ahead; a producer loads as soon as its stage is released."""
    loop = loop_of(last="T.copy(A_shared, Z[(k + 1) * 64, 0])")
    assert why_no_pipeline(pipeline_of(loop, 1, producer=False), loop) == ""
    loop = loop_of(last="T.copy(C_local, Z[(k + 1) * 64, 0])")
    assert "`Z`" in why_no_pipeline(pipeline_of(loop, 1, producer=True), loop)


@pytest.mark.parametrize(
    ("last", "broken"),
    [("", ""), ("T.copy(row, A[(k + 1) * 64, 0])", "read after write of `A`")],
)
def test_vectors_are_prefetched_where_nothing_writes_them_meanwhile(last: str, broken: str) -> None:
    loop = loop_of(last=last)
    copy = next(stmt for stmt in loop.body if isinstance(stmt, Copy) and stmt.dst.buffer.name == "row")
    found = why_not(InOrder(loop.body, (copy,)), loop.body, loop)
    assert (broken in found) if broken else found == ""
