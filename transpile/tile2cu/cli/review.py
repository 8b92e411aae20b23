"""`tile2cu review kernel.py -o review.html`: a kernel, its decisions and their reasons as one page."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tile2cu.cli.request import DEFAULT_TARGET, add_bindings, add_environment, add_sizes, bindings, sizes
from tile2cu.core.origin import STYLES, Look

if TYPE_CHECKING:
    from tile2cu.review.page import Kernel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the Python file")
    parser.add_argument("-o", "--output", default=Path("review.html"), metavar="FILE", type=Path, help="review.html")
    help = f"a target; several have a tab each; by default {DEFAULT_TARGET}"
    parser.add_argument("--target", dest="targets", action="append", default=[], metavar="TARGET", help=help)
    parser.add_argument("--kernel", help="the kernel, by its outermost function; all if not given")
    parser.add_argument("--style", choices=STYLES, default=Look().style, help="what the kernels are written in")
    add_bindings(parser)
    add_environment(parser)
    add_sizes(parser, "a size of the call: with those of the grid, its waves are counted")
    parser.add_argument("--no-compile", action="store_true", help="leave out what needs a compiler: registers, spills")


def run(options: argparse.Namespace) -> int:
    """Writes the page. Errors: T2C-C005 when it cannot be written, and those of transpiling."""
    from tile2cu.files import write_files
    from tile2cu.review.page import page

    targets = list(dict.fromkeys(options.targets)) or [DEFAULT_TARGET]
    kernels = [each for target in targets for each in _kernels(options, target, len(targets) > 1)]
    reports = ["" if options.no_compile else _resources(options, each) for each in kernels]
    write_files({options.output.name: page(kernels, resources=reports)}, options.output.parent)
    return 0


def _kernels(options: argparse.Namespace, target: str, several: bool) -> "list[Kernel]":
    """The kernels of the file for a target."""
    from tile2cu.api import settled_kernels
    from tile2cu.emitter import with_namespaces
    from tile2cu.review.page import reviewed
    from tile2cu.targets import find
    from tile2cu.tool import this_tool

    found = settled_kernels(options.file, kernel=options.kernel, target=find(target), bindings=bindings(options))
    look = Look(style=options.style)
    return [
        reviewed(
            with_namespaces(each),
            label=_label(each[0].program.name, target, several, len(found) > 1),
            tool=this_tool(),
            look=look,
        )
        for each in found
    ]


def _label(kernel: str, target: str, targets: bool, kernels: bool) -> str:
    """What distinguishes a kernel from the others of the page."""
    return f"{kernel}, {target}" if targets and kernels else target if targets else kernel


def _resources(options: argparse.Namespace, kernel: "Kernel") -> str:
    """The report of `tile2cu resources`; where no compiler is installed, that."""
    from tile2cu.loading import emitted_source
    from tile2cu_runtime.errors import Tile2CuRuntimeError
    from tile2cu_runtime.load import manifest_of
    from tile2cu_runtime.resources import inspect

    program, target = kernel.launches[0].program, kernel.launches[0].target.name
    name = program.alias_of or program.name
    try:
        source = emitted_source(options.file, name, target=target, style=options.style, bindings=bindings(options))
        given = {name: int(value) for name, value in sizes(options).items()}
        return str(inspect(manifest_of(source), source.parent, given))
    except (Tile2CuRuntimeError, ModuleNotFoundError) as error:
        return f"not compiled: {error}"
