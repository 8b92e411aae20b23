"""Sentences of a docstring that hold for some values of an argument stand where it has them."""

import pytest

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Role, Var, int_const
from tile2cu.frontend.docstrings import specialised

_DOC = """O = softmax(Q @ K^T).

With is_causal, query i sees the keys 0..i only. Without is_causal, it sees
all keys. With kind = "fp4", values are e2m1. All are finite.

Without a group, there is one scale."""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"is_causal": True}, 'Query i sees the keys 0..i only. With kind = "fp4", values are e2m1. All are finite.'),
        ({"is_causal": False, "kind": "int4"}, "It sees all keys. All are finite."),
        (
            {"is_causal": int_const(1), "kind": "fp4"},
            "Query i sees the keys 0..i only. Values are e2m1. All are finite.",
        ),
        ({"is_causal": None, "kind": None}, "It sees all keys. All are finite."),
    ],
)
def test_sentences_about_other_values_are_left_out(arguments: dict[str, object], expected: str) -> None:
    first, second, third = specialised(_DOC, arguments).split("\n\n")
    assert (first, second) == ("O = softmax(Q @ K^T).", expected)
    assert third == "Without a group, there is one scale.", "a word that is no argument"


def test_what_is_open_stays_as_it_is_written() -> None:
    open_size = Var(INT32, "is_causal", Role.SIZE)
    assert specialised(_DOC, {}) == specialised(_DOC, {"is_causal": open_size}) == _DOC


def test_a_paragraph_of_which_nothing_holds_is_left_out() -> None:
    assert specialised("C = A.\n\nWith window, rows end.\n\nFinite.", {"window": 0}) == "C = A.\n\nFinite."
