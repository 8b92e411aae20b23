"""Locations in the user's Python file."""

from tile2cu.core.record import Record


class Span(Record, frozen=True, order=True):
    """A location in a source file.

    `file` is the name as the user gave it; `line` and `column` count from 1; `end_column` is one past the last
    character on `line`; `text` is the whole source line, without its newline.
    """

    file: str
    line: int
    column: int
    end_column: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"
