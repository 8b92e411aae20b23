"""Diagnostics: what is wrong, where, and how to fix it, in rustc's form."""

from collections.abc import Sequence

from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu_runtime.errors import Error


class Note(Record, frozen=True):
    """An extra line, and a second place if there is one."""

    message: str
    span: Span | None = None


class Tile2CuError(Error):
    """A diagnostic. `code` is `T2C-<letter><3 digits>`, documented in docs/errors.md.

    Letters: F front end, L layout, P pipeline, S select, E emit, R runtime, C command line. `message` is lower case and
    without a full stop; `help` names a fix.
    """

    def __init__(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        *,
        notes: tuple[Note, ...] = (),
        help: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.span = span
        self.notes = notes
        self.help = help

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the diagnostic for another process; the method of Exception supports one argument only."""
        return _rebuilt, (self.code, self.message, self.span, self.notes, self.help)

    def render(self) -> str:
        """The diagnostic as printed to a terminal, without colour and without a final newline."""
        return _rendered(f"error[{self.code}]: {self.message}", self.span, self.notes, self.help)


class Tile2CuWarning(Record, frozen=True, kw_only=True):
    """A diagnostic about a kernel that is emitted nevertheless. `code` is `T2C-W<3 digits>`; the rest is as above."""

    code: str
    message: str
    span: Span
    notes: tuple[Note, ...] = ()
    help: str = ""

    def render(self) -> str:
        """The warning as printed to a terminal, without colour and without a final newline."""
        return _rendered(f"warning[{self.code}]: {self.message}", self.span, self.notes, self.help)

    def as_error(self) -> Tile2CuError:
        """The error that it is under -Werror."""
        notes = (*self.notes, Note("-Werror makes warnings errors"))
        return Tile2CuError(self.code, self.message, self.span, notes=notes, help=self.help)


def require_one_kernel(names: Sequence[str]) -> None:
    """Errors: T2C-C004 where a file has several kernels and one is wanted."""
    if len(names) > 1:
        found = ", ".join(names)
        raise Tile2CuError("T2C-C004", f"the file has several kernels: {found}", help="pick one with --kernel NAME")


def _rendered(head: str, span: Span | None, notes: tuple[Note, ...], help: str) -> str:
    lines = [head]
    if span is not None:
        lines += _place(span)
    for note in notes:
        if note.span is None:
            lines.append("  = note: " + note.message.replace("\n", "\n          "))
        else:
            lines.append(f"note: {note.message}")
            lines += _place(note.span)
    if help:
        lines.append("  = help: " + help.replace("\n", "\n          "))
    return "\n".join(lines)


def _rebuilt(code: str, message: str, span: Span | None, notes: tuple[Note, ...], help: str) -> Tile2CuError:
    return Tile2CuError(code, message, span, notes=notes, help=help)


def _place(span: Span) -> list[str]:
    """The arrow, the source line and the caret under it."""
    gutter = " " * len(str(span.line))
    lines = [f"{gutter}--> {span}"]
    if span.text:
        text = span.text.replace("\t", " ")
        width = max(1, min(span.end_column, len(text) + 1) - span.column)
        lines += [
            f"{gutter} |",
            f"{span.line} | {text}",
            f"{gutter} | {' ' * (span.column - 1)}{'^' * width}",
        ]
    return lines
