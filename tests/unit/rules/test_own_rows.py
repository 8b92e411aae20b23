"""Which lines of shared memory each thread computes for its own rows of a product, and which stay where they are."""

import pytest

from tests.unit.rules.kernels import settled
from tile2cu.core.program import Scope

BODY = """
A_shared = T.alloc_shared((64, 64), "float16")
line_shared = T.alloc_shared((64,), "float32")
S = T.alloc_fragment((64, 64), "float32")
sums = T.alloc_fragment((64, 64), "float32")
T.clear(sums)
for k in T.{turns}(4{stages}):
    T.copy(Z[k * 64, 0], A_shared)
    for i in T.Parallel(64):
        line_shared[i] = {value}
    T.gemm(A_shared, A_shared, S, transpose_B=True, clear_accum=True)
    for i, j in T.Parallel(64, 64):
        sums[i, j] += S[i, j] * line_shared[{at}]
{below}
T.copy(sums, X[0, 0])
"""


def scope(
    at: str = "i",
    value: str = "A[i, k] * 2.0",
    below: str = "",
    turns: str = "Pipelined",
    target: str = "cuda:sm_90a",
) -> Scope:
    """Where the line lies."""
    stages = ", num_stages=2" if turns == "Pipelined" else ""
    context = settled(BODY.format(at=at, value=value, below=below, turns=turns, stages=stages), target=target)
    (line,) = (tile for tile in context.launch.tiles if tile.name.startswith("line"))
    assert (line.name == "line_local") == (line.scope is Scope.FRAGMENT)
    return line.scope


def test_a_line_of_a_products_rows_is_in_registers() -> None:
    assert scope() is Scope.FRAGMENT


@pytest.mark.parametrize(
    "other",
    [
        {"at": "j"},  # of columns each thread holds many
        {"at": "(i + 1) % 64"},
        {"value": "A_shared[i, 0]"},  # there only when the turn's tile is
        {"value": "X[i, k]"},  # which the kernel writes
        {"value": "line_shared[i] + 1.0"},
        {"below": "T.copy(line_shared, X[64, 0:64])"},
        {"turns": "serial"},
        {"target": "cuda:sm_80"},
    ],
    ids=str,
)
def test_other_lines_stay_in_shared_memory(other: dict[str, str]) -> None:
    assert scope(**other) is Scope.SHARED
