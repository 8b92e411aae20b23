"""What a diagnostic's code means."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """What a code means: a title of one line, and a paragraph for whoever meets it for the first time."""

    title: str
    text: str
