"""Differences of index expressions equal the differences of their values, and cancel what they can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile2cu.core import expr as ex
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Binary, Const, Expr, Named, Role, Unary, Var, int_const, static_value
from tile2cu.frontend.linear import difference

BX, BY = Var(INT32, "bx", Role.BLOCK), Var(INT32, "by", Role.BLOCK)
BLOCK = Named(INT32, "block", 64)
VALUES = {"bx": 5, "by": -3}


def value(expr: Expr) -> int:
    """The value of an expression where the variables have VALUES."""
    match expr:
        case Const() | Named():
            return int(expr.value)
        case Var():
            return VALUES[expr.name]
        case Unary():
            return -value(expr.operand)
        case Binary():
            return int(ex.NATIVE[expr.op](value(expr.lhs), value(expr.rhs)))
    raise AssertionError(expr)


leaves = st.sampled_from([BX, BY, BLOCK]) | st.integers(-9, 9).map(int_const)
expressions = st.recursive(
    leaves,
    lambda parts: (
        st.builds(ex.binary, st.sampled_from("+-*"), parts, parts)
        | st.builds(lambda part: Unary(INT32, "-", part), parts)
    ),
    max_leaves=8,
)


@given(expressions, expressions)
def test_difference_has_the_value_of_the_difference(stop: Expr, start: Expr) -> None:
    assert value(difference(stop, start)) == value(stop) - value(start)


@given(expressions, st.sampled_from([BLOCK, int_const(7)]))
def test_what_is_added_is_the_difference(start: Expr, extent: Expr) -> None:
    found = difference(ex.binary("+", start, extent), start)
    assert static_value(found) == static_value(extent)


@pytest.mark.parametrize(
    ("stop", "start", "found"),
    [
        (ex.binary("*", ex.binary("+", BX, int_const(1)), BLOCK), ex.binary("*", BX, BLOCK), BLOCK),
        (ex.binary("+", ex.binary("*", BX, BLOCK), BLOCK), ex.binary("*", BLOCK, BX), BLOCK),
        (BX, int_const(0), BX),
        (ex.binary("+", BX, int_const(8)), ex.binary("-", BX, int_const(8)), int_const(16)),
    ],
)
def test_names_are_kept(stop: Expr, start: Expr, found: Expr) -> None:
    assert difference(stop, start) == found
