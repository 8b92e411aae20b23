"""`tile2cu check`: whether the files are what would be emitted now. Writes nothing.

Exit status: 0 they are, 1 some differ, 2 unknown.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

from tile2cu.cli.diagnostics import (
    FORMATS,
    Diagnostic,
    add_werror,
    as_data,
    diagnostics_of,
    is_error,
    location,
    report,
    sarif_log,
    sarif_result,
    sarif_rules,
    shown_path,
    workflow_command,
)
from tile2cu.cli.selection import add_selection_arguments, select
from tile2cu.project.compare import Difference, State, by_cause, differences
from tile2cu.project.job import emit_all
from tile2cu.version import VERSION

FAILED = 2
_WAYS_OUT = {
    State.MISSING: "run tile2cu build",
    State.STALE: "run tile2cu build",
    State.EDITED: "move the edit into the Python file, or pass --allow-edited",
    State.EDITED_STALE: "run tile2cu update, which merges",
    State.UNLISTED: "delete it, or list it in pyproject.toml",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection_arguments(parser)
    parser.add_argument("--diff", action="store_true", help="show how the files differ")
    parser.add_argument("--format", choices=sorted(_REPORTS), default="text", help="how differences are printed")
    parser.add_argument("--allow-edited", action="store_true", help="accept manual edits of files that are not stale")
    add_werror(parser)


def run(options: argparse.Namespace) -> int:
    from tile2cu.cli.build import progress

    selection = select(options)
    with progress(len(selection.jobs)) as step:
        outcomes = emit_all(selection.jobs, step)
    said = diagnostics_of(outcomes, werror=options.werror)
    report(said, "text")
    failed = any(map(is_error, said))
    found = [] if failed else differences(selection, outcomes)
    if options.allow_edited:
        found = [each for each in found if each.state is not State.EDITED]
    print(_REPORTS[options.format](found, said, options.diff), end="")
    return FAILED if failed else int(bool(found))


def _text(found: Sequence[Difference], said: Sequence[Diagnostic], diff: bool) -> str:
    """The differences; diagnostics for people are on the standard error already."""
    lines = []
    for first, *others in by_cause(found):
        files = shown_path(first.path) + (f" and {len(others)} more" if others else "")
        lines.append(f"{files}: {first.state.value}: {first.why}; {_WAYS_OUT[first.state]}\n")
        lines += [each.diff() for each in (first, *others)] if diff else []
    return "".join(lines)


def _github(found: Sequence[Difference], said: Sequence[Diagnostic], diff: bool) -> str:
    """Workflow commands: GitHub shows them in the change, at the line."""
    lines = [FORMATS["github"](said)]
    for each, *others in by_cause(found):
        message = f"{each.why}; {_WAYS_OUT[each.state]}"
        message += "".join(f"\nalso {shown_path(other.path)}" for other in others)
        message += "".join(f"\n{one.diff()}" for one in (each, *others)) if diff else ""
        place = {"file": shown_path(each.path), "line": str(each.first_line)}
        lines.append(workflow_command("error", {**place, "title": f"tile2cu: {each.state.value}"}, message))
    return "".join(lines)


def _json(found: Sequence[Difference], said: Sequence[Diagnostic], diff: bool) -> str:
    entries = [
        {"path": shown_path(each.path), "state": each.state.value, "why": each.why, "line": each.first_line}
        | ({"diff": each.diff()} if diff else {})
        for each in found
    ]
    same = not found and not any(map(is_error, said))
    head = {"format": 1, "tile2cu": VERSION, "same": same, "differences": entries}
    return json.dumps({**head, **as_data(said)}, indent=1) + "\n"


def _sarif(found: Sequence[Difference], said: Sequence[Diagnostic], diff: bool) -> str:
    rules = [
        {"id": state.name, "shortDescription": {"text": f"generated file is {state.value}"}, "help": {"text": way}}
        for state, way in _WAYS_OUT.items()
        if any(each.state is state for each in found)
    ]
    results = [_result(each, diff) for each in found]
    return sarif_log([*rules, *sarif_rules(said)], [*results, *map(sarif_result, said)])


def _result(each: Difference, diff: bool) -> dict[str, Any]:
    text = f"{each.state.value}: {each.why}; {_WAYS_OUT[each.state]}" + (f"\n{each.diff()}" if diff else "")
    return {
        "ruleId": each.state.name,
        "level": "error",
        "message": {"text": text},
        "locations": [location(each.path, each.first_line)],
    }


_REPORTS: dict[str, Callable[[Sequence[Difference], Sequence[Diagnostic], bool], str]] = {
    "text": _text,
    "github": _github,
    "json": _json,
    "sarif": _sarif,
}
