"""The explanation of a diagnostic's code."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """The explanation of a code: a title of one line, and a paragraph for a reader who sees it for the first time."""

    title: str
    text: str
