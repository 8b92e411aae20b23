"""`tile2cu resources`: registers, spills, shared memory, occupancy, waves and instruction counts of a kernel."""

import argparse
import json
import sys

from tile2cu.cli.request import add_sizes, add_source, bindings, sizes
from tile2cu.core.errors import Tile2CuError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_sizes(parser, "a size of the call: with those of the grid, its waves are counted")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    from tile2cu.loading import emitted_source
    from tile2cu_runtime.errors import Tile2CuRuntimeError
    from tile2cu_runtime.load import manifest_of
    from tile2cu_runtime.resources import inspect

    try:
        given = _whole(sizes(options))
        source = emitted_source(
            options.file, options.kernel, target=options.target, style=options.style, bindings=bindings(options)
        )
        found = inspect(manifest_of(source), source.parent, given)
    except Tile2CuRuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(found.as_data(), indent=1) if options.json else found)
    return 0


def _whole(given: dict[str, int | float]) -> dict[str, int]:
    """Raises T2C-C002 for a size that is no whole number."""
    for name, value in given.items():
        if not isinstance(value, int):
            raise Tile2CuError("T2C-C002", f"`--size {name}={value}` is no whole number", help=f"--size {name}=1024")
    return {name: int(value) for name, value in given.items()}
