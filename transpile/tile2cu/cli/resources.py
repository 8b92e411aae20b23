"""`tile2cu resources`: registers, spills, shared memory, occupancy, waves and instruction counts of a kernel."""

import argparse
import json

from tile2cu.cli.request import add_sizes, add_source, bindings, whole_sizes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_sizes(parser, "a size of the call: with those of the grid, its waves are counted")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    from tile2cu.loading import emitted_source
    from tile2cu_runtime.load import manifest_of
    from tile2cu_runtime.resources import inspect

    given = whole_sizes(options)
    source = emitted_source(
        options.file, options.kernel, target=options.target, style=options.style, bindings=bindings(options)
    )
    found = inspect(manifest_of(source), source.parent, given)
    print(json.dumps(found.as_data(), indent=1) if options.json else found)
    return 0
