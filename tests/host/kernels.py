"""Small kernels for tests on the CPU engine: a body between parameters and launch, loaded with every check on."""

from pathlib import Path
from textwrap import dedent, indent

import tile2cu
from tile2cu_runtime import Kernel

_TEXT = """\
import tilelang
import tilelang.language as T

{head}
@tilelang.jit(out_idx=[-1])
def small({arguments}):
    @T.prim_func
    def body({params}):
        with T.Kernel({grid}, threads={threads}{prelude}) as {blocks}:
{statements}
    return body
"""


def load_body(
    folder: Path,
    statements: str,
    params: str,
    *,
    grid: str = "1",
    blocks: str = "bx",
    arguments: str = "",
    threads: int | tuple[int, ...] = 128,
    head: str = "",
    prelude: str = "",
    check: bool = True,
    target: str = "cuda:sm_80",
    device: str = "cpu",
    **bindings: object,
) -> Kernel:
    """A kernel whose last parameter is its output, on the engine, or on AMD's simulator with `device="sim"`.

    `head` precedes the kernel; `prelude` is T.Kernel's.
    """
    body = indent(dedent(statements).strip("\n"), " " * 12) + "\n"
    text = _TEXT.format(
        head=head,
        arguments=arguments,
        params=params,
        grid=grid,
        threads=threads,
        prelude=f", prelude={prelude}" if prelude else "",
        blocks=blocks,
        statements=body,
    )
    path = folder / "small.py"
    path.write_text(text, encoding="utf-8")
    options = {"schedules": ("round-robin", "reverse", "shuffle")} if check and device == "cpu" else {}
    return tile2cu.load(path, device=device, target=target, check=check, options=options, **bindings)
