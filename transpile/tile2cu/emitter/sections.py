"""The user's own C++."""

from tile2cu.core.user_file import UserCode
from tile2cu.styles.base.comments import ascii_source, rule_line
from tile2cu.styles.base.view import Declaration, Section


def pasted(source: UserCode, file: str) -> Section:
    """C++ of the user's own, in ASCII, otherwise as it is written."""
    lines = [Declaration(ascii_source(line.rstrip())) for line in source.text.strip("\n").expandtabs(4).split("\n")]
    return Section(rule_line(f"{file}:{source.span.line}  {source.what}: kept as it is written"), tuple(lines))
