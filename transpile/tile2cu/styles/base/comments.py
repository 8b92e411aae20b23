"""Comments of the emitted text: the user's own, the Python lines, and the reasons."""

import re
from pathlib import PurePath
from textwrap import wrap

from tile2cu.core.program import If, Let, Loop, Stmt, While
from tile2cu.core.record import Record
from tile2cu.core.user_file import Constant
from tile2cu.plan.paragraphs import is_of_rules, last_line

WIDTH = 120
_PLACE = re.compile(r"\b\d+ [a-z]\b(?: \+ \d+\b)?|\blines? \d+\b")
BODY_WIDTH = 110  # for comments inside a kernel's body, wherever it is indented to


def rule_line(title: str) -> str:
    """A section's title, filled to the width of the page."""
    return f"// ---- {title} ".ljust(WIDTH, "-")


def kernel_line(name: str) -> str:
    """The title of one of several kernels."""
    return f"// ==== {name} ".ljust(WIDTH, "=")


def wrapped(text: str, width: int = WIDTH - 6) -> list[str]:
    """A comment in lines that fit; a place as `16 w + 15` or `line 12` stays in one."""
    kept = _PLACE.sub(lambda place: place[0].replace(" ", "\0"), ascii_only(text))
    lines = wrap(kept, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines] or [""]


def table(rows: tuple[tuple[str, ...], ...], width: int) -> list[str]:
    """Rows in aligned columns; a last cell that `width` has no room for goes on in the lines below it."""
    widths = [max(map(len, column)) + 2 for column in list(zip(*rows, strict=True))[:-1]]
    room = width - sum(widths)
    lines = []
    for *cells, last in rows:
        first, *more = wrapped(last, room)
        start = "".join(cell.ljust(column) for cell, column in zip(cells, widths, strict=True))
        lines += [start + first, *(" " * sum(widths) + line for line in more)]
    return lines


def bracketed(text: str) -> str:
    """A factor, in brackets where it is more than one word."""
    return f"({text})" if " " in text else text


def listed(words: list[str]) -> str:
    """Words as a list in a sentence."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def ascii_only(text: str) -> str:
    """Text with everything outside ASCII escaped, so that emitted files are ASCII for any text of the user's."""
    return text.encode("ascii", "backslashreplace").decode("ascii").rstrip("\\")


def ascii_source(text: str) -> str:
    """C++ with everything outside ASCII as the escapes of its bytes, which mean the same in a string."""
    return "".join(c if ord(c) < 128 else "".join(f"\\{byte:03o}" for byte in c.encode()) for c in text)


class Place(Record, frozen=True):
    """Lines of a Python file, as comments name them."""

    file: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.file}:{self.first}" + (f"-{self.last}" if self.last != self.first else "")


def place_of(group: tuple[Stmt, ...]) -> Place | None:
    """The lines of a paragraph; None where what is inside has them."""
    first = group[0]
    last = last_line(group[-1]) if len(group) > 1 else first.span.line  # that of a statement that moved is earlier
    return None if is_of_rules(first) else Place(file_of(first), first.span.line, max(first.span.line, last))


def heading(group: tuple[Stmt, ...]) -> list[str]:
    """The comment above a paragraph: its place, and the user's words or else the Python line."""
    first, place = group[0], place_of(group)
    if place is None:
        return list(first.comments)
    if isinstance(first, Loop | If | While):
        return [*first.comments, f"{place}  {_code(first)}"]
    if first.comments:
        return _after(place, first.comments)
    *declared, last = group  # of which the last repeats values
    alone = all(isinstance(each, Let) and each.span == last.span for each in declared) and not isinstance(last, Let)
    return [f"{place}  {_code(first)}" if alone else str(place)]


def file_of(place: Stmt | Constant) -> str:
    """The name of the Python file that something is in: the user's, or one next to it."""
    return PurePath(place.span.file).name


def _after(place: Place, comments: tuple[str, ...]) -> list[str]:
    """The user's lines after the place. Where it makes the first too long, those up to an empty one are filled anew."""
    first, *others = comments
    if len(f"{place}  {first}") <= BODY_WIDTH:
        return [f"{place}  {first}", *others]
    end = comments.index("") if "" in comments else len(comments)
    return [f"{place}  {' '.join(comments[:end])}", *comments[end:]]


def _code(stmt: Stmt) -> str:
    """The statement's Python line, with the comment at its end set apart."""
    code = stmt.span.text.strip()
    if stmt.trailing:
        code = code.removesuffix(stmt.trailing).rstrip().removesuffix("#").rstrip()
        return f"{code}    {stmt.trailing}"
    return code


def about_vote(after: str, rule: str) -> tuple[str, ...]:
    """When waves skip a rescale by the change of a reference."""
    text = f"where no row's {after} changes the factor is 1 in the whole wave: no rescale  [{rule}]"
    return tuple(wrapped(text, BODY_WIDTH))
