"""The explanation of a diagnostic's code."""

from tile2cu.core.record import Record


class Explanation(Record, frozen=True):
    """The explanation of a code: a title of one line, and a paragraph for a reader who sees it for the first time."""

    title: str
    text: str
