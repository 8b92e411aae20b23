"""Which kernels a verb is about: a file named on the command line, or those that pyproject.toml lists."""

import argparse
from pathlib import Path

from tile2cu.cli.request import add_project, add_request_arguments, bindings, emit_options, targets
from tile2cu.project.job import Job, Selection


def add_selection_arguments(parser: argparse.ArgumentParser) -> None:
    """A file with its options; without one, the project."""
    parser.add_argument("file", nargs="?", type=Path, help="the Python file; without it, what pyproject.toml lists")
    parser.add_argument("-o", "--output", default=Path("."), type=Path, metavar="DIR", help="the folder of its files")
    add_project(parser)
    add_request_arguments(parser)


def select(options: argparse.Namespace) -> Selection:
    """The jobs of the call. Raises Tile2CuError when the project's list is wrong."""
    if options.file is None:
        from tile2cu.project.config import read_project

        return read_project(options.project)
    job = Job(
        file=options.file,
        folder=options.output,
        target=", ".join(targets(options)),
        kernel=options.kernel,
        bindings=bindings(options),
        options=emit_options(options),
    )
    return Selection(root=options.output, jobs=(job,), listed=False)
