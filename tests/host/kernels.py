"""Small kernels for tests on the CPU engine: a body between parameters and launch, loaded with every check on."""

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import numpy as np

import tile2cu
from tests.conformance.comparison import tolerance
from tests.conformance.reference import interpret
from tile2cu.api import emit_text
from tile2cu.core.program import Buffer
from tile2cu.frontend import programs
from tile2cu.targets import find
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
_FORM = ("grid", "blocks", "arguments", "threads", "head", "prelude")  # of write_body


def write_body(
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
) -> Path:
    """The file of a kernel whose last parameter is its output. `head` precedes the kernel; `prelude` is T.Kernel's."""
    text = _TEXT.format(
        head=head,
        arguments=arguments,
        params=params,
        grid=grid,
        threads=threads,
        prelude=f", prelude={prelude}" if prelude else "",
        blocks=blocks,
        statements=indent(dedent(statements).strip("\n"), " " * 12) + "\n",
    )
    path = folder / "small.py"
    path.write_text(text, encoding="utf-8")
    return path


def load_body(
    folder: Path,
    statements: str,
    params: str,
    *,
    check: bool = True,
    target: str = "cuda:sm_80",
    device: str = "cpu",
    **given: Any,
) -> Kernel:
    """The kernel of write_body, on the engine, or on AMD's simulator with `device="sim"`. `given` are write_body's
    arguments, and bindings.
    """
    form = {name: given.pop(name) for name in _FORM if name in given}
    path = write_body(folder, statements, params, **form)
    options = {"schedules": ("round-robin", "reverse", "shuffle")} if check and device == "cpu" else {}
    return tile2cu.load(path, device=device, target=target, check=check, options=options, **given)


def source_of_body(folder: Path, statements: str, params: str, *, target: str = "cuda:sm_80", **form: Any) -> str:
    """The source of such a kernel alone: a test that only reads it needs no build."""
    path = write_body(folder, statements, params, **form)
    (emitted,) = emit_text(path, kernel=None, target=find(target), bindings={})
    return emitted.source


def assert_interpreted(kernel: Kernel, path: Path, given: dict[str, np.ndarray]) -> None:
    """The kernel writes to its last argument what the reference interpreter does, which runs the file's program."""
    (program,) = programs(path, path.read_text(encoding="utf-8"))
    name, output = program.params[-1].name, program.params[-1]
    assert isinstance(output, Buffer)
    expected = interpret(program, given)[name]
    result = given[name].copy()
    kernel(*{**given, name: result}.values())
    assert np.any(expected)
    fault = tolerance(program, given, wgmma=True).faults(result, expected, output.dtype)
    assert not fault, f"{name}: {fault}"
