"""Values of a product's rows: in registers, and a turn ahead; and products that overwrite what a turn has cleared."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.program import Assign, Fill, Gemm, Loop, Parallel, Scope, Store, walk_stmts

BODY = """
A_shared = T.alloc_shared((64, 64), "float16")
line_shared = T.alloc_shared((64,), "float32")
rows = T.reshape(A, (500, 128))
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
    context = resolved(BODY.format(at=at, value=value, below=below, turns=turns, stages=stages), target=target)
    (line,) = (tile for tile in context.launch.tiles if tile.name.startswith("line"))
    assert (line.name == "line_local") == (line.scope is Scope.FRAGMENT)
    return line.scope


def test_a_line_of_a_products_rows_is_in_registers() -> None:
    assert scope() is Scope.FRAGMENT
    assert scope(value="rows[i, k] * 2.0") is Scope.FRAGMENT


@pytest.mark.parametrize(
    "other",
    [
        {"at": "j"},  # of columns each thread holds many
        {"at": "(i + 1) % 64"},
        {"value": "A_shared[i, 0]"},  # there only when the turn's tile is
        {"value": "rows[i, k] * 2.0", "below": "A[0, 0] = 1.0"},  # changed, by another name
        {"value": "X[i, k]"},  # which the kernel writes
        {"value": "line_shared[i] + 1.0"},
        {"below": "T.copy(line_shared, X[64, 0:64])"},
        {"below": "if line_shared[0] > 0:\n    T.clear(sums)"},
        {"turns": "serial"},
        {"target": "cuda:sm_80"},
    ],
    ids=str,
)
def test_other_lines_stay_in_shared_memory(other: dict[str, str]) -> None:
    assert scope(**other) is Scope.SHARED


AHEAD = """
A_shared = T.alloc_shared((64, 64), "float16")
line = T.alloc_fragment((64,), "float32")
S = T.alloc_fragment((64, 64), "float32")
sums = T.alloc_fragment((64, 64), "float32")
place = T.alloc_var("int32", init=0)
T.clear(sums)
for k in T.Pipelined(4, num_stages={stages}):
    T.copy(Z[k * 64, 0], A_shared)
    other = A[k, 0]
    for i in T.Parallel(64):
        line[i] = {value}
    T.gemm(A_shared, A_shared, S, transpose_B=True, clear_accum=True)
    for i, j in T.Parallel(64, 64):
        sums[i, j] += S[i, j] * line[{at}]
    place = place + 3
T.copy(sums, X[0, 0])
"""


def loaded_ahead(value: str = "A[i, k] * other", at: str = "i", stages: int = 2) -> tuple[list[str], list[str]]:
    """The fragments and the variables that a turn fills for the next one."""
    context = resolved(AHEAD.format(value=value, at=at, stages=stages), target="cuda:sm_90a")
    (loop,) = (op for op in context.launch.body if isinstance(op, Loop))
    filled = [op for part in loop.body if isinstance(part, Parallel) for op in part.body if isinstance(op, Store)]
    variables = [op.var.name for op in loop.body if isinstance(op, Assign) and op.var.name != "place"]
    return [op.buffer.name for op in filled if op.buffer.name.endswith("ahead")], variables


def test_what_rows_need_is_loaded_a_turn_ahead() -> None:
    """A fragment for elements of rows, a variable for what all of them share, once for each element."""
    assert loaded_ahead() == (["A_ahead"], ["A_ahead_2"])
    assert loaded_ahead("A[i, k] * A[i, k] + 1.0") == (["A_ahead"], [])
    assert loaded_ahead("other") == ([], ["A_ahead"])
    assert loaded_ahead(stages=0) == (["A_ahead"], ["A_ahead_2"])


@pytest.mark.parametrize(
    "other",
    [
        {"value": "A[i, 0] + 1.0"},  # the same in each turn
        {"value": "X[i, k]"},  # which the kernel writes
        {"value": "A[i, T.cast(A[k, 0], 'int32')]"},
        {"value": "A[i, k + place]"},  # which changes after that
        {"value": "A[i, 64 // (4 - k)]"},  # by zero behind the last turn
        {"value": "A_shared[i, 0]"},
        {"at": "j"},
    ],
    ids=str,
)
def test_other_values_are_computed_when_they_are_needed(other: dict[str, object]) -> None:
    assert loaded_ahead(**other) == ([], [])  # type: ignore[arg-type]


CLEARED = """
A_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((64, 64), "float32")
sums = T.alloc_fragment((64, 64), "float32")
T.clear(sums)
T.fill(S, {first})
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.gemm(A_shared, A_shared, S, transpose_B=True)
    for i, j in T.Parallel(64, 64):
        sums[i, j] += S[i, j]
    {between}
    {end}
{below}
T.copy(sums, X[0, 0])
"""


def overwrites(first: str = "0", between: str = "pass", end: str = "T.clear(S)", below: str = "") -> bool:
    """Whether the product overwrites S; then nothing clears it."""
    context = resolved(CLEARED.format(first=first, between=between, end=end, below=below), target="cuda:sm_90a")
    statements = tuple(walk_stmts(context.launch.body))
    (product,) = (op for op in statements if isinstance(op, Gemm))
    cleared = [op for op in statements if isinstance(op, Fill) and op.dst.buffer.name == "S"]
    assert not (product.clear and cleared)
    return product.clear


def test_a_product_overwrites_what_each_turn_has_cleared() -> None:
    assert overwrites()
    assert not overwrites(first="1")
    assert not overwrites(between="if A[k, 0] > 0: continue")  # the next turn's product adds then
    assert overwrites(between="if A[k, 0] > 0: break")
    assert not overwrites(end="T.fill(S, 1)")
    assert not overwrites(end="sums[0, 0] = 1.0")
    assert not overwrites(below="T.copy(S, X[64, 0])")
    late = "T.clear(S)\n    if k == 2:\n        T.copy(S, X[64, 0])"
    assert not overwrites(end=late)  # it reads the zeros
