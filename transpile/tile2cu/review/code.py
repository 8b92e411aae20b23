"""Sources as lines of HTML, and which line of the emitted source comes from which of the Python file."""

import re
from collections.abc import Mapping, Sequence
from html import escape

from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Token

# Classes of the style sheet, the first that a token belongs to.
_KINDS = (
    (Token.Comment.Preproc, "pp"),
    (Token.Comment.PreprocFile, "st"),
    (Token.Comment, "co"),
    (Token.Literal.String, "st"),
    (Token.Literal.Number, "nu"),
    (Token.Keyword, "kw"),
    (Token.Operator.Word, "kw"),
    (Token.Name.Decorator, "de"),
)
_DECLARED = re.compile(r"\b(\w+)(?:\[\w+\])?;$")
_RULE = re.compile(r"\[((?:[a-z0-9-]+\.)+[a-z0-9-]+)\]")


def python_lines(text: str) -> list[str]:
    """Each line of a Python file as HTML."""
    return _lines(PythonLexer(stripnl=False, ensurenl=False), text)


def cpp_lines(text: str, rules: frozenset[str]) -> list[str]:
    """Each line of an emitted source as HTML; the `rules` that comments name are links to their entries."""

    def linked(found: re.Match[str]) -> str:
        return f'[<a href="#rule-{found[1]}">{found[1]}</a>]' if found[1] in rules else found[0]

    return [_RULE.sub(linked, line) for line in _lines(CppLexer(stripnl=False, ensurenl=False), text)]


def origins(text: str, lines: Sequence[Sequence[int]], python: str, tiles: Mapping[str, int]) -> list[int]:
    """The Python line of each line of an emitted source, 0 for none.

    It is that of the map `lines`; of comments, of the line that they name; of other declarations of a tile, of its line
    in `tiles`.
    """
    starts = {number: line for number, line in lines}
    comment = re.compile(rf"\s*// {re.escape(python)}:(\d+)(?:-\d+)?(?:  |$)")
    found, mapped, named = [], 0, 0
    for number, line in enumerate(text.splitlines(), 1):
        mapped = starts.get(number, mapped)
        is_comment = line.lstrip().startswith("//")
        place = comment.match(line)
        named = int(place[1]) if place else named if is_comment else 0
        declared = _DECLARED.search(line)
        of_tile = tiles.get(declared[1], 0) if declared and not is_comment else 0
        found.append((named or mapped or of_tile) if line.strip() else 0)
    return found


def _lines(lexer: PythonLexer | CppLexer, text: str) -> list[str]:
    lines = [""]
    for kind, value in lexer.get_tokens(text):
        named = next((name for parent, name in _KINDS if kind in parent), "")
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append("")
            shown = escape(part, quote=False)
            lines[-1] += f'<span class="{named}">{shown}</span>' if named and part.strip() else shown
    return lines[:-1] if lines[-1] == "" else lines
