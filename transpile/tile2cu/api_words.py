"""Diagnostics in the words of Python: `-D M=1024` of the command line is the argument `M=1024` of a call."""

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from tile2cu.core.errors import Tile2CuError

_Called = TypeVar("_Called", bound=Callable[..., Any])
_WORDS = (
    (re.compile(r"'?-D '?(\w+)=([^`' ]*)'?"), r"\1=\2"),
    (re.compile(r"-D (\w+):"), r"\1:"),
    (re.compile(r"\bbind it with -D\b"), "pass it as an argument"),
    (re.compile(r"\bwith -D\b"), "as an argument"),
    (re.compile(r"\bbind it with `(\w+=)"), r"pass it as `\1"),
    (re.compile(r"`?--kernel NAME`?"), 'kernel="NAME"'),
    (re.compile(r"--kernel (\w+)"), r'kernel="\1"'),
    (re.compile(r"--target (\S+?)(?=[`,;. ]|$)"), r'target="\1"'),
)


def in_api_words(text: str) -> str:
    """A message or a help of the command line for those who call Python functions."""
    for option, argument in _WORDS:
        text = option.sub(argument, text)
    return text


def speaks_python(function: _Called) -> _Called:
    """The function, whose errors name arguments rather than options of the command line."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Tile2CuError as error:
            error.message, error.help = in_api_words(error.message), in_api_words(error.help)
            error.notes = tuple(replace(note, message=in_api_words(note.message)) for note in error.notes)
            raise

    return called  # type: ignore[return-value]
