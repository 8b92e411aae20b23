"""`tile2cu migrate kernel.py`: what a program for TileLang would need to change."""

import argparse
from pathlib import Path

from tile2cu.cli.request import DEFAULT_TARGET
from tile2cu.core.errors import Tile2CuError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the Python file")
    parser.add_argument("--target", default=DEFAULT_TARGET, help=f"of its kernels; by default {DEFAULT_TARGET}")


def run(options: argparse.Namespace) -> int:
    """Prints the lines to change, and what of the program has no counterpart. 1 where it would not run as before."""
    from tile2cu.files import read_python
    from tile2cu.targets import find
    from tile2cu.tilelang.migrate import findings, refusals

    path = options.file
    try:
        found = findings(read_python(path))
    except SyntaxError as error:
        raise Tile2CuError("T2C-F001", f"{path}:{error.lineno}: {error.msg}") from None
    for each in found:
        print(f"{path}:{each.line}: {each.text}")
    kernels, errors = refusals(path, find(options.target))
    for problem in errors:
        print(problem)
    blocking = sum(each.blocking for each in found)
    print(f"{kernels - len(errors)} of {kernels} kernels can be transpiled for {options.target}")
    if not blocking and not errors:
        print(f"`python -m tile2cu.tilelang {path}` runs it with its imports unchanged")
    return 1 if blocking or errors else 0
