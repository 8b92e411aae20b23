"""The line of a key in a TOML file, which Python's parser does not report."""

import re
from collections.abc import Sequence

from tile2cu.core.span import Span

_HEADER = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?")


def place(file: str, text: str, path: Sequence[str | int]) -> Span:
    """The place of the last key of `path`, such as ("tool", "tile2cu", "kernels", 1, "file").

    Tables may be written in full or inline, keys may be dotted. Where a key is not found, that of the table around it.
    """
    names = [part for part in path if isinstance(part, str)]
    lines = text.splitlines()
    first, last, rest = _table(lines, path)
    for name in reversed(rest or names[-1:]):
        key = re.compile(rf"""(?:^|[\s{{,."'])({re.escape(name)})["']?\s*[=.]""")
        for number in range(first, last):
            found = key.search(lines[number].partition(" #")[0])
            if found:
                return Span(file, number + 1, found.start(1) + 1, found.end(1) + 1, lines[number])
    number = max(first - 1, 0)
    shown = lines[number] if lines else ""
    return Span(file, number + 1, 1, len(shown) + 1, shown)


def _table(lines: Sequence[str], path: Sequence[str | int]) -> tuple[int, int, list[str]]:
    """The lines of the innermost table that has a header of its own, and the keys that follow it in `path`."""
    best: tuple[int, int, list[str]] = (0, len(lines), [part for part in path if isinstance(part, str)])
    seen: dict[str, int] = {}
    headers = [
        (number, match[1], match[0].strip()) for number, line in enumerate(lines) if (match := _HEADER.match(line))
    ]
    ends = [number for number, _, _ in headers[1:]] + [len(lines)]
    for (number, name, written), end in zip(headers, ends, strict=True):
        keys = [part.strip().strip("\"'") for part in name.split(".")]
        if written.startswith("[["):
            seen[name] = seen.get(name, -1) + 1
        if _stands_for(keys, seen, path):
            strings = [part for part in path if isinstance(part, str)]
            best = (number + 1, end, strings[len(keys) :])
    return best


def _stands_for(keys: Sequence[str], seen: dict[str, int], path: Sequence[str | int]) -> bool:
    """Whether a header with these keys is a part of the path, in the array element that the path means."""
    at = 0
    for depth, key in enumerate(keys):
        if at >= len(path) or path[at] != key:
            return False
        at += 1
        if at < len(path) and isinstance(path[at], int):
            if seen.get(".".join(keys[: depth + 1]), 0) != path[at]:
                return False
            at += 1
    return True
