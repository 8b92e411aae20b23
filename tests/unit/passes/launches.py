"""Launches for tests of passes: small kernels as the frontend reads them."""

from textwrap import indent

from tile2cu.core.program import Launch
from tile2cu.frontend import programs

_HEAD = """\
import tilelang.language as T

@T.prim_func
def example(
    A: T.Tensor((256, 64), "float32"), B: T.Tensor((256, 64), "float32"), Counts: T.Tensor((8,), "int32"),
    H: T.Tensor((256, 64), "float16"), n: T.int32,
):
    with T.Kernel(4, threads={threads}) as bx:
"""


def launch_of(statements: str, *, threads: int = 128) -> Launch:
    """The launch of a kernel with these statements; `bx` is its block, A, B, Counts, H and n its parameters."""
    text = _HEAD.format(threads=threads) + indent(statements.strip("\n"), " " * 8) + "\n"
    (program,) = programs(None, text, kernel=None, bindings={})
    (launch,) = program.launches
    return launch
