"""`tile2cu update`: like build, but merges manual edits with the regenerated sources, and loses nothing."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from tile2cu.cli.build import progress, report_errors
from tile2cu.cli.selection import add_selection_arguments, select
from tile2cu.core.errors import Tile2CuError
from tile2cu.emitter import Emitted
from tile2cu.files import write_files
from tile2cu.project.job import Job, emit_all
from tile2cu.project.memory import Memory
from tile2cu.project.merge import Merged, merged
from tile2cu.project.on_disk import Placed, content_of, placed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection_arguments(parser)


def run(options: argparse.Namespace) -> int:
    selection = select(options)
    memory = Memory(selection.root)
    with progress(len(selection.jobs)) as step:
        outcomes = emit_all(selection.jobs, step)
    failed = bool(report_errors(outcomes, options))
    for outcome in outcomes:
        done = [_update(outcome.job, one, memory) for one in outcome.emitted]
        if all(done):
            memory.note(outcome)
        failed |= not all(done)
    memory.save()
    return 1 if failed else 0


def _update(job: Job, emitted: Emitted, memory: Memory) -> bool:
    """Brings a kernel's files up to date; False when one waits for a decision, and then none of them changes."""
    name = f"{emitted.kernel}.json"
    files = placed(job.folder, emitted.kernel, emitted.files)
    results = [(file, merged(file, emitted.files[file.path.name], memory)) for file in files]
    memory.keep(emitted.files.values())
    if any(result.open for _, result in results):
        for file, result in results:
            _report_open(file, result)
        sides = {each.side.name: each.side_content for _, each in results if each.side and each.what == "conflict"}
        write_files(sides, job.folder)
        for _, each in results:
            if each.what == "conflict":
                _remove(each.remove)  # the new side file holds what they resolved
        return False
    contents = {file.path.name: result.content for file, result in results if result.content is not None}
    contents[name] = emitted.manifest.encode()
    write_files({key: new for key, new in contents.items() if content_of(job.folder / key) != new}, job.folder)
    for file, result in results:
        _remove(result.remove)
        if result.what != "wrote" or result.content != file.content:
            print(f"{result.what} {file.path}")
    return True


def _remove(sides: Iterable[Path]) -> None:
    for side in sides:
        side.unlink(missing_ok=True)


def _report_open(file: Placed, result: Merged) -> None:
    if result.open:
        what = "the edit and what is emitted now are in conflict"
        if result.what == "unresolved":
            what = "an earlier conflict is not resolved"
        error = Tile2CuError(
            "T2C-C016",
            f"{file.path}: {what}",
            help=f"the file is as it was; edit {result.side} until it has no markers, then run tile2cu update again",
        )
        print(error.render(), file=sys.stderr)
