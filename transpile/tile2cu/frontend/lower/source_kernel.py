"""T.CUDASourceCodeKernel: a launch whose whole body is the user's own CUDA."""

import re

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, Role, Var, walk
from tile2cu.core.program import Buffer
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault, counted
from tile2cu.frontend.lower import extern, program
from tile2cu.frontend.lower.effect import perform
from tile2cu.frontend.operators import demand_sizes, unknown
from tile2cu.frontend.values import Opaque, describe

_NAME = "T.CUDASourceCodeKernel"
# A kernel's qualifiers, return type and name, up to its parameters.
_KERNEL = re.compile(
    r"__global__(?P<before>(?:[\w\s]|__launch_bounds__\s*\([^()]*\))*?)\b(?!__launch_bounds__)(?P<name>\w+)\s*\("
)
_BOUNDS = re.compile(r"\s*__launch_bounds__\s*\([^()]*\)")


def source_kernel(
    cx: Context,
    *blocks: object,
    threads: object = None,
    source_code_or_path: object = None,
    entry_name: object = "main_kernel",
    cluster_dims: object = None,
    prelude: object = None,
) -> None:
    """`T.CUDASourceCodeKernel(x, threads=128, source_code_or_path=text, entry_name="f")`: the user's own kernel.

    Its text is kept, but the entry is a device function, which the emitted kernel calls with the tensors and scalars of
    the T.prim_func in their order, then with the open sizes.
    """
    source = _text(source_code_or_path)
    names = [found["name"] for found in _KERNEL.finditer(source)]
    if not isinstance(entry_name, str) or entry_name not in names:
        have = f"its kernels are {', '.join(f'`{name}`' for name in names)}" if names else "it has no `__global__`"
        raise Fault("T2C-F023", f"the CUDA of {_NAME} has no kernel {entry_name!r}: {have}")
    extern.paste(cx, prelude, f"`prelude` of {_NAME}")
    extern.paste(cx, _as_functions(source), f"{_NAME}, __global__ as __device__")
    frame = program.kernel(cx, *blocks, threads=threads, cluster_dims=cluster_dims)
    if len(frame.threads) > 1:
        raise Fault("T2C-F011", f"{_NAME} with threads in {len(frame.threads)} dimensions is not supported")
    passed = _arguments(cx)
    if _parameters(source, entry_name) != len(passed):
        takes = f"`{entry_name}` takes {counted(_parameters(source, entry_name), 'argument')}"
        help = "it gets the tensors and scalars of the T.prim_func in their order, then the open sizes"
        raise Fault("T2C-F023", f"{takes}, and {_NAME} passes {len(passed)}", help=help)
    with cx.recorder.launch(frame, ("bx", "by", "bz")[: len(frame.grid)]):
        perform(cx, Call(INT32, f"::{entry_name}", passed))


def _text(source: object) -> str:
    if isinstance(source, Opaque):
        raise unknown(source, f"the text of {_NAME}")
    if isinstance(source, Expr):
        demand_sizes(f"the text of {_NAME}", source)
    if not isinstance(source, str):
        raise Fault("T2C-F023", f"{_NAME} takes CUDA as a string, not {describe(source)}")
    if "\n" not in source and "{" not in source:
        help = "give the text itself: the emitted source contains it"
        raise Fault("T2C-F011", f"{_NAME} with the path of a file is not supported", help=help)
    return source


def _as_functions(source: str) -> str:
    """The text with its kernels as device functions: only those have callers, and only kernels have launch bounds."""
    return _KERNEL.sub(
        lambda found: f"__device__{_BOUNDS.sub('', found['before'])}{found['name']}(",
        source,
    )


def _parameters(source: str, name: str) -> int:
    """The number of a kernel's parameters."""
    found = next(each for each in _KERNEL.finditer(source) if each["name"] == name)
    depth, count, text = 1, 1, ""
    for char in source[found.end() :]:
        depth += (char in "(<[{") - (char in ")>]}")
        if not depth:
            break
        count += char == "," and depth == 1
        text += char
    return count if text.strip() not in ("", "void") else 0


def _arguments(cx: Context) -> tuple[Expr, ...]:
    params = list(cx.recorder.params.values())
    sizes = dict.fromkeys(
        part
        for param in params
        if isinstance(param, Buffer)
        for extent in param.shape
        for part in walk(extent)
        if isinstance(part, Var) and part.role is Role.SIZE
    )
    what = f"an argument of {_NAME}"
    passed = (extern.address(cx, each, "rw", what) if isinstance(each, Buffer) else each for each in params)
    return (*passed, *sizes)


FUNCTIONS = {"CUDASourceCodeKernel": source_kernel}
