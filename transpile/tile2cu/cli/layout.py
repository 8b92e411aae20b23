"""`tile2cu layout kernel.py --tile C_local -o a.svg`: a tile's layout as a picture."""

import argparse
import re
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from tile2cu.cli.request import DEFAULT_TARGET, add_bindings, add_kernel, bindings
from tile2cu.core.errors import Tile2CuError

if TYPE_CHECKING:
    from tile2cu.review.layouts import TileLayout


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the Python file")
    parser.add_argument("--tile", metavar="NAME", help="the tile, as the Python file names it; without it, a list")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="the SVG file; without it, it is printed")
    parser.add_argument("--window", metavar="ROWSxCOLS", help="draw the first rows and columns only: 16x32")
    parser.add_argument("--target", default=DEFAULT_TARGET, help=f"the target; by default {DEFAULT_TARGET}")
    add_kernel(parser)
    add_bindings(parser)


def run(options: argparse.Namespace) -> int:
    """Writes the picture, or lists the tiles. Errors: T2C-C006 when no tile has the name, and those of transpiling."""
    rows, cols = _window(options.window)
    found = _layouts(options)
    if options.tile is None:
        print("\n".join(f"{name}: line {each.line}: {each}  [{each.rule}]" for name, each in found.items()))
        return 0
    if options.tile not in found:
        raise _no_such_tile(options.tile, list(found))
    picture = found[options.tile].plot(options.output, rows=rows, cols=cols)
    if options.output is None:
        sys.stdout.write(picture.svg)
    return 0


def _layouts(options: argparse.Namespace) -> "dict[str, TileLayout]":
    from tile2cu.api import one_resolved_kernel
    from tile2cu.review.layouts import layouts_of
    from tile2cu.targets import find

    target = find(options.target)
    return layouts_of(one_resolved_kernel(options.file, options.kernel, target=target, bindings=bindings(options)))


def _window(given: str | None) -> tuple[int | None, int | None]:
    """Raises T2C-C002 for a text that is not ROWSxCOLS."""
    if given is None:
        return None, None
    found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", given)
    if found is None:
        raise Tile2CuError("T2C-C002", f"`--window {given}` is not of the form ROWSxCOLS", help="--window 16x32")
    return int(found[1]), int(found[2])


def _no_such_tile(name: str, tiles: list[str]) -> Tile2CuError:
    near = get_close_matches(name, tiles, n=1)
    help = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(tiles)}" if tiles else "it has none"
    return Tile2CuError("T2C-C006", f"the kernel has no tile `{name}` with a layout", help=help)
