"""The origin and the options of an emitted source: what its first lines and its manifest record of both."""

from typing import Literal

from tile2cu.core.record import Record

ENVIRONMENT = "env:"  # how the names of bindings begin that are variables of the environment: --env

SHIMS = ("dlpack", "jax", "pybind11", "torch", "tvm-ffi")
STYLES = ("tl", "cute", "ck")


class Tool(Record, frozen=True, kw_only=True):
    """The version of tile2cu that emits. `sha256` is over all that determines its output; empty, it is not recorded."""

    version: str
    sha256: str = ""


class EmitOptions(Record, frozen=True, kw_only=True):
    """Options of the emitted source.

    `style`, of STYLES, is the vocabulary of the kernels: headers/tl, CUTLASS's CuTe, or Composable
    Kernel's ck_tile; `clang_format` the content of a
    .clang-format file, empty for tile2cu's own; `name` the C function's, empty for that of the kernel's outermost
    function; `line` "python" emits #line directives, so that compilers and profilers name the Python file; `with_test`
    adds NAME_test.cpp, `shims` NAME_torch.cpp and the like, by their names. With `tiles` "auto" the model chooses the
    values of tile parameters that have none; `family` are other files, by their paths from the kernel's own, whose
    kernels compute the same: the model chooses among them all.
    """

    style: str = "tl"
    clang_format: str = ""
    name: str = ""
    with_test: bool = False
    shims: tuple[str, ...] = ()
    line: Literal["off", "python"] = "off"
    tiles: Literal["default", "auto"] = "default"
    family: tuple[str, ...] = ()
