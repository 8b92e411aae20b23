"""Comments that silence warnings: `# tile2cu: ignore[W002]`, `# tile2cu: ignore[W001, W002]`."""

import re

from tile2cu.core.errors import Tile2CuWarning

_COMMENT = re.compile(r"#\s*tile2cu:\s*ignore\[([^\]]*)\]")


def is_ignored(warning: Tile2CuWarning, text: str) -> bool:
    """Whether a comment on the warning's line, or alone on the line above, names its code."""
    lines, number = re.split("\r\n|\r|\n", text), warning.span.line
    is_of_text = number <= len(lines) and lines[number - 1] == warning.span.text
    above = lines[number - 2].strip() if is_of_text and number > 1 else ""
    above = above if above.startswith("#") else ""
    return any(warning.code.removeprefix("T2C-") in _codes(line) for line in (warning.span.text, above))


def _codes(line: str) -> frozenset[str]:
    """The codes that a comment of the line names, without `T2C-`."""
    found = _COMMENT.search(line)
    named = found[1].split(",") if found is not None else []
    return frozenset(name.strip().upper().removeprefix("T2C-") for name in named)
