"""Expressions as Python functions."""

import pytest

from tile2cu.chooser.numbers import Unknown, number, parameter_key
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, Role, Unary, Var, binary, int_const

X = Var(name="X", dtype=INT32, role=Role.SIZE)


def key() -> str:
    from tile2cu.chooser.numbers import key_of

    return key_of(X)


def of(expr: Expr, value: int = 37) -> int:
    return number(expr)({key(): value})


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!="])
def test_operators_are_pythons(op: str) -> None:
    assert of(binary(op, X, int_const(5))) == int(eval(f"37 {op} 5"))


def test_quotients_round_towards_zero_and_calls() -> None:
    assert of(Call(function="ceildiv", args=(X, int_const(8)), dtype=INT32)) == 5
    assert of(Call(function="max", args=(X, int_const(40)), dtype=INT32)) == 40
    assert of(Call(function="min", args=(X, int_const(40)), dtype=INT32)) == 37
    assert of(Call(function="if_then_else", args=(binary(">", X, int_const(3)), int_const(1), X), dtype=INT32)) == 1
    assert of(Unary(op="-", operand=X, dtype=INT32)) == -37


@pytest.mark.parametrize(
    "expr", [binary("//", int_const(1), X), binary("<<", int_const(1), binary("-", X, int_const(1)))]
)
def test_what_the_values_do_not_determine(expr: Expr) -> None:
    with pytest.raises(Unknown):
        of(expr, 0)
    with pytest.raises(Unknown):
        number(expr)({parameter_key("X"): 1})


def test_expressions_that_are_deeper_than_pythons_parser_takes() -> None:
    deep: Expr = X
    for _ in range(150):
        deep = binary("+", binary("*", deep, int_const(1)), int_const(1))
    assert of(deep) == 187
