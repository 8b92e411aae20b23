"""`tile2cu vendor -o third_party/kernels`: a folder with all that another project needs to build the kernels."""

import argparse
from pathlib import Path

from tile2cu.cli.build import progress, report_errors
from tile2cu.cli.selection import add_selection_arguments, select
from tile2cu.files import write_files
from tile2cu.project.job import emit_all
from tile2cu.project.on_disk import content_of
from tile2cu.project.vendor import Options, vendor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection_arguments(parser)
    parser.set_defaults(output=None, usage_error=parser.error)
    parser.add_argument("--single-header", action="store_true", help="one runtime header, tl/tl.h, for all kernels")
    parser.add_argument("--with-cpu", action="store_true", help="add the CPU engine, to run the kernels without a GPU")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the folder is not current")


def run(options: argparse.Namespace) -> int:
    if options.output is None:
        options.usage_error("the folder is needed: -o DIR")
    folder: Path = options.output
    selection = select(options)
    with progress(len(selection.jobs)) as step:
        outcomes = emit_all(selection.jobs, step)
    if report_errors(outcomes, options):
        return 1
    files = vendor(outcomes, Options(single_header=options.single_header, with_cpu=options.with_cpu))
    changed = {name: text for name, text in files.items() if content_of(folder / name) != text.encode()}
    if options.check:
        for name in changed:
            print(f"{folder / name}: {'stale' if (folder / name).exists() else 'missing'}")
        return 1 if changed else 0
    for path in write_files(changed, folder):
        print(path)
    return 0
