"""Which additions of neighbours are one call: both sides start at multiples of the packet's size."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import ATOMIC_VECTOR

_TILES = """
S = T.alloc_shared((64, 64), "{dtype}")
odd = T.alloc_shared((64, 66), "float32")
F = T.alloc_fragment((64, 64), "float32")
T.clear(S)
T.clear(odd)
T.clear(F)
for i, j in T.Parallel(64, 8):
    {statement}
""".strip()


def packet(statement: str, dtype: str = "float32") -> int | None:
    context = resolved(_TILES.format(statement=statement, dtype=dtype), target="cuda:sm_90a")
    found = [context.facts.get(stmt, ATOMIC_VECTOR) for stmt in context.statements]
    return next((count for count in found if count is not None), None)


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ("T.atomic_addx4(X[i, j * 4], S[i, j * 4])", 4),
        ("T.atomic_addx2(X[i, j * 2 + 6], S[i, j * 4])", 2),
        ("T.atomic_addx4(X[i, j * 4], A[i, 4 + j * 4])", 4),
        ("T.atomic_addx2(X[i, j * 2], odd[i, j * 2])", 2),
        ("T.atomic_addx4(X[i, j * 4], F[i, j * 4])", 4),  # whose elements other threads hold: through shared memory
        ("T.atomic_addx4(Z[i, j * 4 : j * 4 + 4], S[i, j * 4 : j * 4 + 4])", 4),
    ],
)
def test_one_call(statement: str, count: int) -> None:
    assert packet(statement) == count


@pytest.mark.parametrize(
    "statement",
    [
        "T.atomic_addx4(X[i, j * 4 + 2], S[i, j * 4])",  # not at a multiple
        "T.atomic_addx4(X[i, j * 4], S[i, j * 2])",
        "T.atomic_addx4(X[i, j * 4], odd[i, j * 4])",  # rows of 66
        "T.atomic_addx4(Y[i, j * 4], S[i, j * 4])",  # rows of n
        "T.atomic_addx4(odd[i, j * 4], X[i, j * 4])",  # no tensor
        'T.atomic_addx4(X[i, j * 4], S[i, j * 4], memory_order="release")',
        "S[i, j] = T.atomic_addx4(X[i, j * 4], S[i, j * 4], return_prev=True)[0]",
    ],
)
def test_one_by_one(statement: str) -> None:
    assert packet(statement) is None


def test_one_by_one_where_elements_are_wider_than_an_access() -> None:
    assert packet("T.atomic_addx4(X[i, j * 4], S[i, j * 4])", "float64") is None
