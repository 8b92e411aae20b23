"""The form of a diagnostic."""

from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.span import Span


def test_a_diagnostic_shows_place_caret_note_and_help() -> None:
    here = Span("matmul.py", 11, 9, 15, "        T.gemm(A, B, C)")
    there = Span("matmul.py", 7, 5, 6, "    x = 1")
    error = Tile2CuError(
        "T2C-L001", "two rules disagree", here, notes=(Note("why"), Note("the other", there)), help="do this"
    )
    assert error.render().splitlines() == [
        "error[T2C-L001]: two rules disagree",
        "  --> matmul.py:11:9",
        "   |",
        "11 |         T.gemm(A, B, C)",
        "   |         ^^^^^^",
        "  = note: why",
        "note: the other",
        " --> matmul.py:7:5",
        "  |",
        "7 |     x = 1",
        "  |     ^",
        "  = help: do this",
    ]


def test_a_caret_never_leaves_its_line() -> None:
    span = Span("k.py", 1, 3, 99, "x = (")
    assert Tile2CuError("T2C-F001", "m", span).render().splitlines()[-1] == "  |   ^^^"


def test_a_diagnostic_without_a_place_is_one_line() -> None:
    assert Tile2CuError("T2C-C003", "unknown target `x`").render() == "error[T2C-C003]: unknown target `x`"
