"""Expressions in C++: precedence, conversions, division that rounds as Python's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile2cu.analysis.bounds import Bounds
from tile2cu.core.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT16, DType
from tile2cu.core.expr import Binary, Call, Const, Expr, Load, Named, Role, Unary, Var, binary, int_const
from tile2cu.core.program import Buffer, Launch, Scope
from tile2cu.core.span import Span
from tile2cu.styles.base.expressions import Printer, literal
from tile2cu.styles.base.names import Names

SPAN = Span("k.py", 1, 1, 2)
BX = Var(INT32, "bx", Role.BLOCK)
I = Var(INT32, "i", Role.PARALLEL)  # noqa: E741 the user's name
X = Var(FLOAT32, "x", Role.LET)
H = Var(FLOAT16, "h", Role.LET)
SCALE = Named(FLOAT32, "scale", 0.125)
TILE = Buffer(name="acc", shape=(int_const(8), int_const(8)), dtype=FLOAT32, scope=Scope.FRAGMENT, span=SPAN)


def printer() -> Printer:
    launch = Launch(grid=(int_const(10),), blocks=(BX,), threads=128, tiles=(), body=(), span=SPAN)
    return Printer(Names([]), Bounds(launch))


def text(expr: Expr, want: DType | None = None) -> str:
    return printer().text(expr, want)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Binary(INT32, "*", Binary(INT32, "+", BX, int_const(1)), int_const(64)), "(bx + 1) * 64"),
        (Binary(INT32, "-", BX, Binary(INT32, "-", BX, int_const(1))), "bx - (bx - 1)"),
        (Binary(INT32, "+", BX, Binary(INT32, "-", BX, int_const(1))), "bx + bx - 1"),
        (Binary(INT32, "+", BX, Binary(INT32, "+", I, int_const(1))), "bx + (i + 1)"),
        (Binary(FLOAT32, "+", X, Binary(FLOAT32, "-", X, X)), "x + (x - x)"),
        (Binary(INT32, "//", BX, int_const(2)), "bx / 2"),
        (Binary(INT32, "*", Binary(INT32, "%", BX, int_const(2)), int_const(64)), "(bx % 2) * 64"),
        (Binary(INT32, "%", Binary(INT32, "*", BX, int_const(2)), int_const(64)), "(bx * 2) % 64"),
        (Binary(INT32, "*", Binary(INT32, "//", BX, int_const(2)), int_const(64)), "(bx / 2) * 64"),
        (Binary(INT32, "//", Binary(INT32, "-", BX, int_const(1)), int_const(2)), "tl::floordiv(bx - 1, 2)"),
        (Binary(INT32, "%", Unary(INT32, "-", BX), int_const(2)), "tl::floormod(-bx, 2)"),
        (Binary(INT32, "|", BX, Binary(INT32, "+", BX, int_const(1))), "bx | (bx + 1)"),
        (Binary(BOOL, "&", Binary(BOOL, "<", BX, int_const(3)), Binary(BOOL, "!=", BX, I)), "(bx < 3) & (bx != i)"),
        (Call(FLOAT32, "max", (X, Const(INT32, 0))), "tl::max(x, 0.0f)"),
        (Call(FLOAT32, "infinity", ()), "tl::infinity<float>"),
        (Unary(FLOAT32, "-", Call(FLOAT32, "infinity", ())), "-tl::infinity<float>"),
        (Call(INT32, "max", (I, int_const(3))), "tl::max(int(i), 3)"),
        (Load(FLOAT32, TILE, (I, BX)), "acc(i, bx)"),
        (binary("*", X, SCALE), "x * scale"),
        (binary("*", H, X), "tl::cast<float>(h) * x"),
        (binary("*", H, Const(FLOAT32, 0.5)), "h * tl::half(0.5f)"),
        (Call(FLOAT16, "cast", (X,)), "tl::cast<tl::half>(x)"),
    ],
)
def test_text(expr: Expr, expected: str) -> None:
    assert text(expr) == expected


def test_a_sum_is_added_term_by_term_where_each_sum_on_the_way_fits() -> None:
    """`m - n` fits, and so does `m - 9`; `bx * 2 - 9 + m` may not, `bx - 9 + m` does."""
    m, n = (Var(INT32, name, Role.SIZE) for name in "mn")
    inner = binary("+", int_const(-9), binary("-", m, n))
    assert text(binary("+", BX, inner)) == "bx + -9 + m - n"
    assert text(binary("+", binary("*", BX, int_const(2)), inner)) == "bx * 2 + (-9 + m - n)"


def test_a_select_is_lazy_and_parenthesised_inside_others() -> None:
    select = Call(FLOAT32, "if_then_else", (binary("<", BX, int_const(3)), X, Const(INT32, 0)))
    assert text(select) == "bx < 3 ? x : 0.0f"
    assert text(binary("+", select, X)) == "(bx < 3 ? x : 0.0f) + x"


@pytest.mark.parametrize("op", ["*", "&", "|", "^", "+"])
def test_a_condition_of_numbers_is_parenthesised(op: str) -> None:
    """Clang takes a product of truths before `?` for a mistake."""
    condition = binary(op, binary("<", BX, int_const(3)), binary(">", BX, int_const(1)))
    select = Call(FLOAT32, "if_then_else", (condition, X, Const(FLOAT32, 0.0)))
    assert text(select) == f"({text(condition)}) ? x : 0.0f"


def test_a_choice_that_is_known_is_not_asked() -> None:
    condition = binary("<", BX, int_const(3))
    select = Call(FLOAT32, "if_then_else", (condition, X, Const(FLOAT32, 0.0)))
    knows = printer()
    knows.holds = condition
    assert knows.text(select) == "x"


def test_mixed_logic_gets_the_parentheses_that_compilers_ask_for() -> None:
    low, high = binary("<", BX, int_const(3)), binary(">", BX, int_const(5))
    both = Binary(low.dtype, "and", low, high)
    assert text(Binary(low.dtype, "or", both, low)) == "(bx < 3 && bx > 5) || bx < 3"
    assert text(Unary(low.dtype, "not", both)) == "!(bx < 3 && bx > 5)"


def test_a_truth_is_not_compared_with_a_truth() -> None:
    flag = Var(BOOL, "flag", Role.LET)
    assert text(Binary(BOOL, "!=", flag, Const(BOOL, 0))) == "flag"
    assert text(Binary(BOOL, "==", flag, Const(BOOL, 0))) == "!flag"
    assert text(Binary(BOOL, "==", flag, Const(BOOL, 1))) == "flag"


def test_shifts_stand_apart_from_masks() -> None:
    shifted = Binary(INT32, ">>", BX, int_const(4))
    assert text(Binary(INT32, "&", shifted, int_const(15))) == "(bx >> 4) & 15"


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (0, FLOAT32, "0.0f"),
        (1e-6, FLOAT32, "1e-06f"),
        (0.5, FLOAT64, "0.5"),
        (3, INT64, "3ll"),
        (2.5, BFLOAT16, "tl::bfloat16(2.5f)"),
        (float("-inf"), FLOAT32, "-tl::infinity<float>"),
        ((1.0 / 128) ** 0.5 * 1.44269504, FLOAT32, "0.12751743f"),  # the digits that a float can tell apart
        (1.44269504, FLOAT32, "1.44269504f"),  # as the user wrote it
        (1.0 + 2**-24, FLOAT32, "1.0f"),  # half way to the next float: to even
        (1.0 + 2**-24 + 1e-12, FLOAT32, "1.0000001f"),
        (1 / 3, FLOAT64, "0.3333333333333333"),
    ],
)
def test_literals(value: float, dtype: DType, expected: str) -> None:
    assert literal(value, dtype) == expected


def test_conversion_to_a_narrower_type_is_explicit() -> None:
    assert text(X, FLOAT16) == "tl::cast<tl::half>(x)"
    assert text(BX, FLOAT32) == "bx"
    assert text(X, INT32) == "tl::cast<int>(x)"


@st.composite
def sums(draw: st.DrawFn, depth: int = 4) -> Expr:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([BX, int_const(draw(st.integers(1, 9)))]))
    op = draw(st.sampled_from(["+", "-", "*"]))
    return Binary(INT32, op, draw(sums(depth - 1)), draw(sums(depth - 1)))


@given(sums(), st.integers(0, 9))
def test_parentheses_keep_the_meaning(expr: Expr, bx: int) -> None:
    def value(part: Expr) -> int:
        match part:
            case Binary():
                a, b = value(part.lhs), value(part.rhs)
                return {"+": a + b, "-": a - b, "*": a * b}[part.op]
            case Const():
                return int(part.value)
            case _:
                return bx

    assert eval(text(expr), {"bx": bx}) == value(expr)  # noqa: S307 our own text: + - * read alike in Python and C++


def test_a_slot_is_named_where_a_pipeline_gives_a_tile_several() -> None:
    inside = printer()
    inside.stages["acc"] = "k % 3"
    assert inside.tile(TILE) == "acc[k % 3]"


def test_a_bit_cast_is_of_the_value_s_own_width() -> None:
    bits = Var(UINT16, "bits", Role.LET)
    shifted = Binary(UINT16, "<<", bits, Const(UINT16, 3))
    assert text(Call(FLOAT16, "reinterpret", (bits,))) == "tl::reinterpret<tl::half>(bits)"
    assert text(Call(FLOAT16, "reinterpret", (shifted,))).startswith(
        "tl::reinterpret<tl::half>(tl::cast<uint16_t>(bits <<"
    )
