"""Serial loops around a loop over elements: collapsed where no iteration depends on an earlier one."""

import pytest

from tests.unit.passes.launches import launch_of
from tile2cu.core.expr import static_value
from tile2cu.core.program import Loop, Parallel, walk_stmts
from tile2cu.passes.collapse_loops import joined_loops

KERNEL = """
F = T.alloc_fragment((16, 64), "float32")
flat = T.reshape(B, (16384,))
v = T.alloc_var("int32", 0)
T.copy(A[0, 0], F)
for i in T.serial(16):
    for j in T.Parallel(64):
        {body}
"""


def is_collapsed(body: str) -> bool:
    launch = joined_loops(launch_of(KERNEL.format(body=body.replace("\n", "\n        "))))
    loops = [stmt for stmt in walk_stmts(launch.body) if isinstance(stmt, Loop)]
    (elements,) = (stmt for stmt in walk_stmts(launch.body) if isinstance(stmt, Parallel))
    assert len(elements.vars) + len(loops) == 2
    return not loops


@pytest.mark.parametrize(
    "body",
    [
        "F[i, j] = F[i, j] * 2",
        "F[i, j] = F[i, T.max(j - 1, 0)]",  # of its own row
        "B[i * 2, j] = F[i, j]\nB[i * 2 + 1, j] = B[i * 2 + 1, j] + F[i, j]",
        "if F[i, j] > 0:\n    T.atomic_add(Counts[0], 1)",  # in any order
    ],
)
def test_iterations_that_meet_nowhere_are_elements(body: str) -> None:
    assert is_collapsed(body)


@pytest.mark.parametrize(
    "body",
    [
        "B[0, j] = F[i, j]",  # the last one counts
        "F[i, j] = F[T.max(i - 1, 0), j]",
        "flat[i * 64 + j] = F[i, j] + B[T.max(i - 1, 0), j]",  # by another name
        "old = T.atomic_add(Counts[0], 1, return_prev=True)\nF[i, j] = old",
        "F[i, j] = F[i, j] + v\nv = v + 1",
    ],
)
def test_others_stay_in_order(body: str) -> None:
    assert not is_collapsed(body)


VECTORS = """
F = T.alloc_fragment((16, 64), "float32")
T.copy(A[0, 0], F)
for i, j in T.Parallel(16, 32):
    for v in T.vectorized(2):
        {body}
"""


@pytest.mark.parametrize(
    ("body", "elements"),
    [
        ("F[i, j * 2 + v] = F[i, v + 2 * j] * B[i, j * 2 + v]", (16, 64)),
        ("F[i, j * 2 + v] = F[i, j * 2 + v] * j", (16, 32)),  # of a vector, not of an element
        ("F[i, j * 2 + v] = F[i, v]", (16, 32)),
        ("F[i, j * 2 + v] = F[i, T.max(j * 2 + v - 1, 0)]", (16, 32)),  # in order
        ("F[i, j * 3 + v] = 1.0", (16, 32)),
        ("B[i, j * 2 + v] = A[i, j * 2 + v]", (16, 32)),  # a thread moves a vector, as it is written
    ],
)
def test_elements_of_vectors(body: str, elements: tuple[int, int]) -> None:
    launch = joined_loops(launch_of(VECTORS.format(body=body)))
    (found,) = (stmt for stmt in walk_stmts(launch.body) if isinstance(stmt, Parallel))
    assert tuple(map(static_value, found.extents)) == elements
    assert any(isinstance(stmt, Loop) for stmt in walk_stmts(launch.body)) == (elements != (16, 64))
