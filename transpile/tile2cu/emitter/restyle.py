"""Emitted text in the style of a user's own .clang-format, so that their clang-format has nothing to say of it."""

import re
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, chain
from textwrap import wrap
from typing import Any

from tile2cu.core.errors import Tile2CuError
from tile2cu.emitter.formatting import formatted, settings

LineMap = list[tuple[int, int]]
"""(text line, Python line) of the places where a Python line's text begins, ascending."""

Rendered = tuple[str, LineMap]

_ROUNDS = 4  # clang-format is done with a text after one or two
_COMMENT = re.compile(r"(?P<indent>\s*)//(?P<text>.*)")
_RULER = re.compile(r" ([-=])\1{3} (?P<title>.*?) \1{4,}")
_SWITCH = re.compile(r"\s*// clang-format (on|off)")
_COLUMNS = re.compile(r"\S {2,}\S")
# What our own comments are filled to at least: a line may go on in the next where that one's first word did not fit.
_FILLED = 110
_UNBROKEN: Any = {"break_long_words": False, "break_on_hyphens": False}


def restyled(rendered: dict[str, Rendered], clang_format: str) -> dict[str, Rendered]:
    """Files, by name, in the style of `clang_format`, the content of a .clang-format. Errors: T2C-E010.

    clang-format fills a line that it breaks with the next line, for any text. So comments are brought to the
    style's width before it may touch them, where the style has indented them to.
    """
    with _style(clang_format) as style:
        user = settings(style)
    texts = {name: text for name, (text, _) in rendered.items()}
    with _style(re.sub(r"^(ReflowComments: +)\w+", r"\g<1>Never", user, flags=re.M)) as style:
        texts = formatted(texts, style)
    if width := int(re.findall(r"^ColumnLimit: +(\d+)", user, flags=re.M)[0]):
        texts = {name: _fitted(text, width) for name, text in texts.items()}
    with _style(user) as style:
        for _ in range(_ROUNDS):
            before, texts = texts, formatted(texts, style)
            if texts == before:
                break
    return {name: (texts[name], _carried(lines, old, texts[name])) for name, (old, lines) in rendered.items()}


@contextmanager
def _style(content: str) -> Iterator[str]:
    """What clang-format's --style takes for the content of a .clang-format."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".clang-format") as file:
        file.write(content)
        file.flush()
        try:
            yield f"file:{file.name}"
        except Tile2CuError as error:  # clang-format names the copy
            raise Tile2CuError(error.code, error.message.replace(file.name, ".clang-format")) from error


def _carried(lines: LineMap, old: str, new: str) -> LineMap:
    """The map of a text that was formatted anew: a place is known by the letters and digits before it."""
    starts = [0, *_letters(old)]
    ends = list(_letters(new))
    return [(bisect_right(ends, starts[line - 1]) + 1, python) for line, python in lines]


def _letters(text: str) -> Iterator[int]:
    """How many letters and digits there are up to the end of each line, those aside that `_fit` adds."""
    return accumulate(0 if _SWITCH.fullmatch(line) else len(re.findall(r"\w", line)) for line in text.splitlines())


def _fitted(text: str, width: int) -> str:
    """The text with its comment lines at most `width` columns wide; those that fit stay as they are."""
    paragraphs = _paragraphs(text.splitlines())
    fitted = "\n".join(chain.from_iterable(_fit(lines, width) for lines in paragraphs)) + "\n"
    return re.sub(r"^( *)// clang-format on\n\1// clang-format off\n", "", fitted, flags=re.M)


def _paragraphs(lines: list[str]) -> list[list[str]]:
    """Lines of code one by one, lines of a comment together where the words of one go on in the next."""
    found: list[list[str]] = []
    for line in lines:
        if found and _goes_on(found[-1][-1], line):
            found[-1].append(line)
        else:
            found.append([line])
    return found


def _goes_on(line: str, following: str) -> bool:
    first, second = _COMMENT.fullmatch(line), _COMMENT.fullmatch(following)
    if not first or not second or first["indent"] != second["indent"]:
        return False
    if _RULER.fullmatch(first["text"]) or not re.match(r" \S", second["text"]):
        return False
    return len(f"{first['text'].strip()} {second['text'].split()[0]}") > _FILLED


def _fit(lines: list[str], width: int) -> list[str]:
    """One paragraph; a table's row has to stay whole, so clang-format is off for it."""
    comment = _COMMENT.fullmatch(lines[0])
    if comment is None or all(len(line) <= width for line in lines):
        return lines
    indent, text = comment["indent"], comment["text"]
    if ruler := _RULER.fullmatch(text):
        title = f"{indent}// {ruler[1] * 4} {ruler['title']} "
        return [title.ljust(width, ruler[1])] if len(title) < width else [title.rstrip()]
    begin = indent + "//" + " " * (len(text) - len(text.lstrip()))
    is_set_in = text.startswith("  ")
    if is_set_in and _COLUMNS.search(text):
        return [f"{indent}// clang-format off", *lines, f"{indent}// clang-format on"]
    words = " ".join(line.split("//", 1)[1].strip() for line in lines)
    following = begin + "    " * is_set_in
    return wrap(words, width, initial_indent=begin, subsequent_indent=following, **_UNBROKEN)
