"""The text of what a kernel says and checks while it runs."""

from pathlib import PurePath

from tile2cu.core.program import Assert, Buffer, Print
from tile2cu.emitter.expressions import Printer


def said(stmt: Assert | Print, printer: Printer) -> str:
    """The call, whose message begins with the place in the Python file."""
    place = f"{PurePath(stmt.span.file).name}:{stmt.span.line}"
    if isinstance(stmt, Assert):
        condition = printer.text(stmt.condition)
        return f"tl::device_assert({condition}, {quoted(f'{place}: {stmt.message or condition}')});"
    if isinstance(stmt.what, Buffer):
        return f"tl::print({quoted(f'{place}: {stmt.message or stmt.what.name}')}, {printer.tile(stmt.what)});"
    value = printer.argument(stmt.what, stmt.what.dtype)
    return f"tl::print({quoted(f'{place}: {stmt.message or printer.text(stmt.what)}')}, {value});"


def quoted(text: str) -> str:
    """A string literal of C++; what is not printable ASCII is escaped byte by byte."""
    out = []
    for byte in text.encode("utf-8"):
        char = chr(byte)
        out.append(f"\\{char}" if char in '"\\' else char if 32 <= byte < 127 else f"\\{byte:03o}")
    return '"' + "".join(out).replace("??", "?\\?") + '"'
