"""Comments of the emitted text: the user's own, the Python lines, and the reasons."""

from tile2cu.core.program import Stmt

WIDTH = 120


def rule_line(title: str) -> str:
    """A section's title, filled to the width of the page."""
    return f"// ---- {title} ".ljust(WIDTH, "-")


def python_line(stmt: Stmt, line_prefix: str, room: int = WIDTH - 8) -> str:
    """The statement's Python line with its place and the comment at its end, cut to fit one line."""
    code = stmt.span.text.strip()
    if stmt.trailing:
        code = code.removesuffix(stmt.trailing).rstrip().removesuffix("#").rstrip()
    text = f"{line_prefix}:{stmt.span.line}  {code}"
    if stmt.trailing:
        text += f"    {stmt.trailing}"
    return ascii_only(text if len(text) <= room else text[: room - 4] + " ...")


def ascii_only(text: str) -> str:
    """Text with everything outside ASCII escaped, so that emitted files are ASCII whatever the user wrote."""
    return text.encode("ascii", "backslashreplace").decode("ascii").replace("\\\n", "\n").rstrip("\\")
