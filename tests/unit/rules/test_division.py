"""Divisions of many elements by the same number."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.expr import Binary, Call, Expr
from tile2cu.core.program import Parallel, Store

LOOP = """
S = T.alloc_fragment((64, 64), {dtype!r})
R = T.alloc_fragment((64,), {dtype!r})
T.fill(S, 1)
T.fill(R, 1)
for i, j in T.Parallel(64, 64):
    {statement}
"""


def stored(statement: str, dtype: str = "float32") -> tuple[str, Expr]:
    """The operator and the value of the loop's store, as it is decided about."""
    context = resolved(LOOP.format(statement=statement, dtype=dtype))
    loop = next(op for op in context.launch.body if isinstance(op, Parallel))
    (store,) = (op for op in loop.body if isinstance(op, Store))
    return store.op, store.value


@pytest.mark.parametrize(
    "statement", ["S[i, j] /= R[i]", "S[i, j] = S[i, j] / R[i]", "S[i, j] /= X[0, 0]", "S[i, j] /= 3"]
)
def test_a_divisor_that_a_row_shares(statement: str) -> None:
    op, value = stored(statement)
    assert op == "" and isinstance(value, Call) and value.function == "divide" and len(value.args) == 2


def test_quotients_within_quotients() -> None:
    _, value = stored("S[i, j] = T.exp2(S[i, j] / (R[i] + 1)) / R[i]")
    assert isinstance(value, Call) and value.function == "divide"
    (power, _) = value.args
    assert isinstance(power, Call) and isinstance(power.args[0], Call) and power.args[0].function == "divide"


@pytest.mark.parametrize("statement", ["S[i, j] /= S[i, j]", "S[i, j] /= -0.25", "S[i, j] = S[i, j] / X[0, j]"])
def test_other_divisors_are_divided_by(statement: str) -> None:
    op, value = stored(statement)
    assert op == "/" or isinstance(value, Binary) and value.op == "/"


def test_a_name_for_an_element_is_not_shared() -> None:
    _, value = stored("y = S[i, j]\n    S[i, j] = 1 / y")
    assert isinstance(value, Binary) and value.op == "/"


def test_other_types_are_divided_plainly() -> None:
    op, _ = stored("S[i, j] /= R[i]", "float16")
    assert op == "/"
