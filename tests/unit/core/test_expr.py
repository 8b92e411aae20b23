"""Laws of expressions: folding, names that survive, promotion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile2cu.core.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT32, INT64, UINT8, UINT32, promote
from tile2cu.core.expr import Binary, Call, Const, Named, Role, Var, binary, fold, int_const, result_dtype, static_value

BLOCK = Named(INT32, "block_M", 128)
SIZE = Var(INT32, "M", Role.SIZE)
HALF = Var(FLOAT16, "h", Role.LET)
FLAG = Var(BOOL, "flag", Role.LET)
SINGLE = Var(FLOAT32, "x", Role.LET)


def test_literals_are_folded() -> None:
    assert binary("*", int_const(6), int_const(7)) == int_const(42)


def test_a_named_number_stays_named_and_keeps_its_value() -> None:
    half = binary("//", BLOCK, int_const(2))
    assert isinstance(half, Binary)
    assert half.lhs is BLOCK
    assert static_value(half) == 64


@pytest.mark.parametrize("op", ["+", "-", "*", "//"])
def test_neutral_operands_vanish(op: str) -> None:
    neutral = int_const(0 if op in "+-" else 1)
    assert binary(op, SIZE, neutral) is SIZE


def test_times_zero_is_zero() -> None:
    assert binary("*", SIZE, int_const(0)) == int_const(0)


def test_floats_are_not_simplified() -> None:
    assert isinstance(binary("+", SINGLE, Const(FLOAT32, 0.0)), Binary)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.sampled_from(["+", "-", "*", "//", "%", "<", "=="]))
def test_folding_is_python_arithmetic(a: int, b: int, op: str) -> None:
    value = static_value(Binary(INT32, op, int_const(a), int_const(b)))
    if op in ("//", "%") and b == 0:
        assert value is None
    else:
        assert value == {
            "+": a + b, "-": a - b, "*": a * b, "<": a < b, "==": a == b,
            "//": a // b if b else None, "%": a % b if b else None,
        }[op]  # fmt: skip


@pytest.mark.parametrize(
    ("lhs", "rhs", "expected"),
    [
        (HALF, Const(INT32, 2), FLOAT16),
        (HALF, Const(FLOAT32, 0.5), FLOAT16),
        (SINGLE, HALF, FLOAT32),
        (SIZE, Const(FLOAT32, 0.5), FLOAT32),
        (SIZE, SINGLE, FLOAT32),
        (Const(FLOAT32, 1.0, weak=False), HALF, FLOAT32),
        (FLAG, Const(INT32, 2), INT32),
        (FLAG, Const(BOOL, 1), BOOL),
    ],
)
def test_a_weak_literal_takes_the_other_sides_type(lhs: Var, rhs: Var, expected: object) -> None:
    assert result_dtype(lhs, rhs) == expected


def test_promotion() -> None:
    assert promote(FLOAT16, BFLOAT16) == FLOAT32
    assert promote(INT32, UINT32) == INT32
    assert promote(INT64, UINT32) == INT64
    assert promote(BOOL, FLOAT16) == FLOAT16
    assert promote(UINT8, BOOL) == promote(BOOL, UINT8) == UINT8


def test_comparisons_are_bool() -> None:
    assert binary("<", SIZE, BLOCK).dtype == BOOL


def test_ceildiv_is_static_when_its_operands_are() -> None:
    assert static_value(Call(INT32, "ceildiv", (int_const(1000), BLOCK))) == 8
    assert static_value(Call(INT32, "ceildiv", (SIZE, BLOCK))) is None


def test_a_program_expression_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="no truth value"):
        bool(SIZE)


@pytest.mark.parametrize(
    ("op", "lhs", "rhs"), [("<<", 1, -1), (">>", 1, -1), ("//", 1, 0), ("%", 1.0, 0.0), ("**", 0.0, -1)]
)
def test_operators_without_a_value_fold_to_nothing(op: str, lhs: float, rhs: float) -> None:
    assert fold(op, lhs, rhs) is None
    assert static_value(binary(op, Const(INT32, lhs), Const(INT32, rhs))) is None
