"""Colour of diagnostics on a terminal. The variable NO_COLOR, or TERM=dumb, disables it."""

import os
import re
from typing import TextIO

_BOLD, _RED, _YELLOW, _BLUE, _CYAN, _PLAIN = (
    "\x1b[1m",
    "\x1b[1;31m",
    "\x1b[1;33m",
    "\x1b[1;34m",
    "\x1b[1;36m",
    "\x1b[0m",
)
_STYLES = (
    (re.compile(r"^(error\[T2C-[A-Z]\d{3}\])(: .*)$", re.MULTILINE), rf"{_RED}\1{_PLAIN}{_BOLD}\2{_PLAIN}"),
    (re.compile(r"^(warning\[T2C-[A-Z]\d{3}\])(: .*)$", re.MULTILINE), rf"{_YELLOW}\1{_PLAIN}{_BOLD}\2{_PLAIN}"),
    (re.compile(r"^(note)(: )", re.MULTILINE), rf"{_CYAN}\1{_PLAIN}\2"),
    (re.compile(r"^(  = )(note|help)(: )", re.MULTILINE), rf"\1{_CYAN}\2{_PLAIN}\3"),
    (re.compile(r"^( +\| +)(\^+)$", re.MULTILINE), rf"\1{_RED}\2{_PLAIN}"),
    (re.compile(r"^( *)(-->)", re.MULTILINE), rf"\1{_BLUE}\2{_PLAIN}"),
)


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user has not disabled colour: https://no-color.org."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def coloured(text: str, stream: TextIO) -> str:
    """Diagnostics as they are printed to a stream."""
    if wants_colour(stream):
        for pattern, style in _STYLES:
            text = pattern.sub(style, text)
    return text
