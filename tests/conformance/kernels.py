"""Programs of a few lines, for the interpreter's tests."""

from __future__ import annotations

from textwrap import dedent, indent

from tile2cu.core.program import Program
from tile2cu.frontend import programs

_TEXT = """\
import tilelang
import tilelang.language as T

{head}


@tilelang.jit
def small():
    @T.prim_func
    def body({params}):
        with T.Kernel({grid}, threads={threads}) as {blocks}:
{statements}
    return body
"""


def small_program(
    statements: str, params: str, *, grid: str = "1", blocks: str = "bx", threads: int = 128, head: str = ""
) -> Program:
    """The program of a kernel with this body; `head` precedes it in the file."""
    body = indent(dedent(statements).strip("\n"), " " * 12)
    text = _TEXT.format(head=head, params=params, grid=grid, blocks=blocks, threads=threads, statements=body)
    (program,) = programs(None, text)
    return program
