"""The options by which a kernel is asked for on the command line, shared by the verbs that take them."""

import argparse
from pathlib import Path

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.origin import ENVIRONMENT, SHIMS, STYLES, EmitOptions

DEFAULT_TARGET = "cuda:sm_80"


def add_request_arguments(parser: argparse.ArgumentParser) -> None:
    """--target, --kernel, -D and the options of the text."""
    targets = (
        "the target, as cuda:sm_80 (default), cuda:sm_90a or hip:gfx942; tile2cu --list-targets prints all. Several of"
        " one language, with commas between: each kernel is one C function, which chooses by the device"
    )
    parser.add_argument("--target", default=DEFAULT_TARGET, help=targets)
    parser.add_argument("--kernel", help="the kernel to transpile, by its outermost function; all if not given")
    add_bindings(
        parser,
        ": a number, a text, or Python that the file would understand, as 'config=Config(block=(1, 128))'; sizes that"
        " get none stay run-time arguments",
    )
    parser.add_argument("--name", default="", help="the C function's name, if it is not to be that of the kernel")
    parser.add_argument("--with-test", action="store_true", help="write NAME_test.cpp too: a test that needs no Python")
    parser.add_argument(
        "--shim",
        dest="shims",
        action="append",
        default=[],
        choices=SHIMS,
        help="write NAME_SHIM.cpp too: the kernel as that library calls it; may be given several times",
    )
    parser.add_argument(
        "--style",
        choices=STYLES,
        default=EmitOptions().style,
        help="what kernels are written in: tl, the library of headers that comes along (default), CUTLASS's cute,"
        " or Composable Kernel's ck",
    )
    parser.add_argument("--clang-format", metavar="FILE", type=Path, help="a .clang-format file to format the text by")
    add_auto(parser)
    add_family(parser, "the model chooses among them")
    parser.add_argument(
        "--line",
        choices=("off", "python"),
        default="off",
        help="python: #line directives, so that compilers, debuggers and profilers name the Python file",
    )


def targets(options: argparse.Namespace) -> list[str]:
    """The names that --target has, each once."""
    return list(dict.fromkeys(name.strip() for name in options.target.split(",")))


def add_source(parser: argparse.ArgumentParser, default_target: str | None = DEFAULT_TARGET, more: str = "") -> None:
    """A Python file or an emitted kernel, with --target, --style, --kernel and -D for the former."""
    parser.add_argument("file", type=Path, help="the Python file, or a kernel that was emitted: its .json, .cu or .hip")
    parser.add_argument("--target", default=default_target, help=f"the target; by default {DEFAULT_TARGET}{more}")
    parser.add_argument("--style", choices=STYLES, default=EmitOptions().style, help="what the kernel is written in")
    add_kernel(parser)
    add_bindings(parser)


def add_bindings(parser: argparse.ArgumentParser, more: str = "") -> None:
    """-D NAME=VALUE and --env NAME=VALUE, which may be repeated; `more` is added to the help of the former."""
    help = f"a value for an argument of the kernel's factory{more}"
    parser.add_argument("-D", dest="bindings", action="append", default=[], metavar="NAME=VALUE", help=help)
    help = "a variable of the environment that the file reads with os.getenv or os.environ; without it, none is set"
    parser.add_argument("--env", dest="environment", action="append", default=[], metavar="NAME=VALUE", help=help)


def add_sizes(parser: argparse.ArgumentParser, help: str, form: str = "NAME=VALUE") -> None:
    """--size NAME=VALUE, which may be given several times."""
    parser.add_argument("--size", dest="sizes", action="append", default=[], metavar=form, help=help)


def add_kernel(parser: argparse.ArgumentParser) -> None:
    """--kernel, where one is wanted."""
    parser.add_argument("--kernel", help="the kernel, by its outermost function, if the file has several")


def add_project(parser: argparse.ArgumentParser) -> None:
    """--project."""
    help = "where pyproject.toml is, or below"
    parser.add_argument("--project", default=Path("."), type=Path, metavar="DIR", help=help)


def sizes(options: argparse.Namespace) -> dict[str, int | float]:
    """The numbers given with --size, by name. Raises T2C-C002 when one is not NAME=NUMBER."""
    found: dict[str, int | float] = {}
    for text in options.sizes:
        name, _, value = text.partition("=")
        number = number_or_text(value)
        if not name.isidentifier() or not isinstance(number, int | float):
            raise Tile2CuError(
                "T2C-C002", f"`--size {text}` is not of the form NAME=NUMBER", help="write for instance --size M=1024"
            )
        found[name] = number
    return found


def whole_sizes(options: argparse.Namespace) -> dict[str, int]:
    """The same, whole numbers. Raises T2C-C002 for one that is not."""
    given = sizes(options)
    for name, value in given.items():
        if not isinstance(value, int):
            raise Tile2CuError("T2C-C002", f"`--size {name}={value}` is no whole number", help=f"--size {name}=1024")
    return {name: int(value) for name, value in given.items()}


def emit_options(options: argparse.Namespace) -> EmitOptions:
    """How the text shall options. Raises T2C-C001 when the .clang-format file cannot be read."""
    from tile2cu.files import read

    clang_format = read(options.clang_format) if options.clang_format else ""
    return EmitOptions(
        style=options.style,
        clang_format=clang_format,
        name=options.name,
        line=options.line,
        tiles=options.tiles,
        family=tuple(options.family),
        with_test=options.with_test,
        shims=tuple(dict.fromkeys(options.shims)),
    )


def add_family(parser: argparse.ArgumentParser, what: str) -> None:
    """--family, which may be given several times; `what` is done with the files."""
    parser.add_argument(
        "--family",
        action="append",
        default=[],
        metavar="FILE",
        help=f"another file whose kernel computes the same, by its path from the first: {what}",
    )


def add_auto(parser: argparse.ArgumentParser) -> None:
    """--auto."""
    parser.add_argument(
        "--auto",
        dest="tiles",
        action="store_const",
        const="auto",
        default="default",
        help="choose the values of tile parameters without -D by a model of the GPU, for the sizes given with -D",
    )


def bindings(options: argparse.Namespace) -> dict[str, object]:
    """The values given with -D, and with --env, by name. Raises T2C-C002 when one is not NAME=VALUE."""
    return dict(_binding(text) for text in options.bindings) | dict(map(_variable, options.environment))


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Tile2CuError("T2C-C002", f"`--env {text}` is not of the form NAME=VALUE")
    return f"{ENVIRONMENT}{name}", value


def _binding(text: str) -> tuple[str, object]:
    """`NAME=VALUE`, split."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        whole, dot, field = name.partition(".")
        of_field = equals and dot and whole.isidentifier()
        example = f"-D '{whole}=CLASS({field}={value}, ...)'" if of_field else "-D M=1024"
        raise Tile2CuError(
            "T2C-C002", f"`-D {text}` is not of the form NAME=VALUE", help=f"write for instance {example}"
        )
    return name, number_or_text(value)


def number_or_text(value: str) -> object:
    """A Python int, float, bool or None where the text reads as one, else the text."""
    named: dict[str, object] = {"True": True, "False": False, "None": None}
    if value in named:
        return named[value]
    for number in (int, float):
        try:
            return number(value)
        except ValueError:
            continue
    return value
