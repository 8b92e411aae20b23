"""Markers become a line map, and text stays ASCII."""

from tile2cu.emitter.render import _take_markers
from tile2cu.styles.base.comments import ascii_only


def test_markers_vanish_and_map_lines() -> None:
    text, lines = _take_markers("a\n  //@7\nb\nc\n//@8\n//@9\nd\n")
    assert text == "a\nb\nc\nd\n"
    assert lines == [(2, 7), (4, 9)]


def test_the_same_line_twice_is_one_entry() -> None:
    assert _take_markers("//@3\na\n//@3\nb\n")[1] == [(1, 3)]


def test_comments_become_ascii_and_never_continue_a_line() -> None:
    assert ascii_only("α ≤ β") == "\\u03b1 \\u2264 \\u03b2"
    assert ascii_only("ends in a backslash \\") == "ends in a backslash "
