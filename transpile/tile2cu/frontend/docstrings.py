"""Docstrings of a specialisation: a sentence about a value of an argument is where the argument has that value."""

import re
from collections.abc import Mapping

from tile2cu.core.expr import Expr, static_value

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
_CONDITION = re.compile(r"(With|Without) `?(\w+)`?(?: = (\"?)([\w.]+)\3)?, ")
_WORD = re.compile(r"[a-z]{2,}\b(?![(\[_.])")


def specialised(text: str, arguments: Mapping[str, object]) -> str:
    """A docstring without the sentences whose condition does not hold, and the others without their condition.

    Conditions start a sentence: `With NAME, ...`, `Without NAME, ...` and `With NAME = VALUE, ...`, of an argument that
    is known when the kernel is emitted.
    """
    values = ((name, static_value(each) if isinstance(each, Expr) else each) for name, each in arguments.items())
    known = {name: value for name, value in values if value is not None or arguments[name] is None}
    paragraphs = (_paragraph(paragraph, known) for paragraph in text.split("\n\n"))
    return "\n\n".join(filter(None, paragraphs))


def _paragraph(text: str, known: Mapping[str, object]) -> str:
    sentences = _SENTENCE_END.split(text)
    kept = [_sentence(sentence, known) for sentence in sentences]
    return text if kept == sentences else " ".join(" ".join(kept).split())


def _sentence(text: str, known: Mapping[str, object]) -> str:
    """A sentence for known arguments; empty where its condition does not hold."""
    found = _CONDITION.match(" ".join(text.split()))
    if found is None or found[2] not in known:
        return text
    value = known[found[2]]
    holds = str(value) == found[4] if found[4] else bool(value)
    rest = " ".join(text.split())[found.end() :]
    rest = rest[0].upper() + rest[1:] if _WORD.match(rest) else rest
    return rest if holds == (found[1] == "With") else ""
