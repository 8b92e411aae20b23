"""Small kernels for tests of rules: statements of a body, wrapped and resolved."""

from textwrap import indent

from tile2cu.api import resolve_launches
from tile2cu.frontend import programs
from tile2cu.rules import Context
from tile2cu.targets import find

_HEAD = """\
import tilelang.language as T

m, n = T.dynamic("m, n")

@T.prim_func
def example(
    A: T.Tensor((1000, 64), "float32"), X: T.Tensor((4096, 4096), "float32"), Y: T.Tensor((m, n), "float16"),
    Z: T.Tensor((4096, 4096), "float16"), blocks: T.int32,
):
    with T.Kernel({grid}, threads={threads}, cluster_dims={cluster}) as bx:
"""
FIRST_LINE = _HEAD.count("\n") + 1


def resolved(
    statements: str, *, threads: int = 128, target: str = "cuda:sm_80", cluster: int = 1, grid: str = "16"
) -> Context:
    """The facts about a kernel with these statements; `bx` is its block, A, X, Y and Z its tensors."""
    text = _HEAD.format(threads=threads, cluster=cluster, grid=grid) + indent(statements.strip("\n"), " " * 8) + "\n"
    (program,) = programs(None, text, kernel=None, bindings={})
    (context,) = resolve_launches(program, find(target))
    return context


def subject(context: Context, about: str | int) -> object:
    """A buffer by name, a statement by its line (from 1), or the launch."""
    if about == "launch":
        return context.launch
    if isinstance(about, int):
        return next(stmt for stmt in context.statements if stmt.span.line == FIRST_LINE + about - 1)
    buffers = [*context.launch.tiles, *context.program.params]
    return next(buffer for buffer in buffers if buffer.name == about)
