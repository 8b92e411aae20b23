"""`tile2cu build`: writes what pyproject.toml lists, in parallel, and only what changed."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tile2cu.cli.diagnostics import add_format, diagnostics_of, is_error, report
from tile2cu.cli.request import add_project
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.files import write_files
from tile2cu.project.job import Outcome, Selection, emit_all
from tile2cu.project.memory import Memory
from tile2cu.project.on_disk import content_of, function_of, manifests, placed, read_manifest, sha256

if TYPE_CHECKING:
    from tile2cu.emitter import Emitted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument("--force", action="store_true", help="overwrite files with manual edits")
    parser.add_argument("--list-outputs", action="store_true", help="print the files' names and write nothing")
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    from tile2cu.project.config import read_project

    return build(
        read_project(options.project),
        force=options.force,
        list_outputs=options.list_outputs,
        werror=options.werror,
        form=options.format,
    )


def build(selection: Selection, *, force: bool, list_outputs: bool, werror: bool = False, form: str = "text") -> int:
    """Emits the jobs that are not current and writes what they gave; prints the files that it wrote.

    With `werror` nothing is written of a job that has warnings; `form` is how diagnostics are printed.
    """
    memory = Memory(selection.root)
    current = [job for job in selection.jobs if memory.is_current(job)]
    with progress(len(selection.jobs) - len(current)) as step:
        outcomes = emit_all([job for job in selection.jobs if job not in current], step)
    said = diagnostics_of(outcomes, werror=werror)
    report(said, form)
    failed = sum(map(is_error, said))
    if list_outputs:
        _print_outputs(selection, outcomes, memory)
        return 1 if failed else 0
    for outcome in outcomes:
        if not any(map(is_error, diagnostics_of([outcome], werror=werror))):
            try:
                _write(outcome, memory, force)
            except Tile2CuError as error:
                report([error], "text")
                failed += 1
    memory.save(selection.jobs)
    if outcomes and form == "text":
        for outcome in outcomes:
            if len(outcome.job.targets) > 1 and outcome.job.dispatch is None:
                print_dispatches(outcome.job.folder, outcome.emitted)
        _print_clashes(selection)
    return 1 if failed else 0


def print_dispatches(folder: Path, emitted: Sequence["Emitted"]) -> None:
    """Notes on the standard error which C functions choose among a kernel's architectures."""
    for one in emitted:
        manifest = json.loads(one.manifest)
        if "dispatches" in manifest:
            name, kernels = function_of(manifest), " or ".join(manifest["dispatches"])
            where = os.path.relpath(folder / f"{one.kernel}.cpp")
            print(f"note: `{name}` launches {kernels}, by the device's architecture: {where}", file=sys.stderr)


def _print_clashes(selection: Selection) -> None:
    """Notes on the standard error which kernels define one C function, and cannot be linked into one binary."""
    folders: dict[str, list[str]] = {}
    for folder in dict.fromkeys(job.folder for job in selection.jobs):
        for path in manifests(folder):
            folders.setdefault(function_of(read_manifest(path) or {"kernel": path.stem}), []).append(
                os.path.relpath(folder)
            )
    for name, places in folders.items():
        if len(places) > 1:
            one = "give one another `name`, or list them in [[tool.tile2cu.dispatch]], which selects one at run time"
            print(
                f"note: {', '.join(places)} define one C function, `{name}`: a binary can have one of them; {one}",
                file=sys.stderr,
            )


def report_errors(outcomes: Sequence[Outcome], options: argparse.Namespace) -> int:
    """Prints the diagnostics of the jobs, or keeps them for --format, and gives the number of errors."""
    said = diagnostics_of(outcomes, werror=False)
    if options.format == "text":
        report(said, "text")
    else:
        options.said += said
    return sum(map(is_error, said))


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal; elsewhere silence. Each step is given a title."""
    if not total or not sys.stderr.isatty():
        yield lambda title: None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit="file", leave=False, file=sys.stderr) as bar:

        def step(title: str) -> None:
            bar.set_postfix_str(title, refresh=False)
            bar.update()

        yield step


def _write(outcome: Outcome, memory: Memory, force: bool) -> None:
    """Writes those of a job's files that differ from the files on disk.

    A file with manual edits is kept; T2C-C014 is raised when its emitted content has changed.
    """
    job = outcome.job
    files = {name: text for one in outcome.emitted for name, text in one.files.items()}
    there = [] if force else [each for one in outcome.emitted for each in placed(job.folder, one.kernel, one.files)]
    edited = [each for each in there if each.edited and each.content != files[each.path.name].encode()]
    stale = [str(each.path) for each in edited if each.base != sha256(files[each.path.name])]
    if stale:
        raise Tile2CuError(
            "T2C-C014",
            f"{_counted(len(stale))} edited, and its emitted content has changed",
            notes=(Note("\n".join(stale)),),
            help="`tile2cu update` merges the two; --force writes over the edits",
        )
    kept = {each.path.name for each in edited}
    changed = {
        name: text
        for name, text in files.items()
        if name not in kept and content_of(job.folder / name) != text.encode()
    }
    for path in write_files(changed, job.folder):
        print(path)
    memory.note(outcome)


def _counted(files: int) -> str:
    return "a file was" if files == 1 else f"{files} files were"


def _print_outputs(selection: Selection, outcomes: Sequence[Outcome], memory: Memory) -> None:
    emitted = {outcome.job.key: outcome.emitted for outcome in outcomes}
    for job in selection.jobs:
        if job.key in emitted:
            paths = [job.folder / name for one in emitted[job.key] for name in one.files]
        else:
            paths = memory.outputs(job)
        for path in paths:
            print(path)
