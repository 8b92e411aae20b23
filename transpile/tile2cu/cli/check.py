"""`tile2cu check`: whether the files are what would be emitted now. Writes nothing.

Exit status: 0 they are, 1 some differ, 2 unknown.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tile2cu.cli.selection import add_selection_arguments, select
from tile2cu.core.codes import CODES
from tile2cu.core.errors import Tile2CuError
from tile2cu.project.compare import Difference, State, differences
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
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection_arguments(parser)
    parser.add_argument("--diff", action="store_true", help="show how the files differ")
    parser.add_argument("--format", choices=sorted(_FORMATS), default="text", help="how differences are printed")
    parser.add_argument("--allow-edited", action="store_true", help="accept manual edits of files that are not stale")


def run(options: argparse.Namespace) -> int:
    from tile2cu.cli.build import progress, report_errors

    selection = select(options)
    with progress(len(selection.jobs)) as step:
        outcomes = emit_all(selection.jobs, step)
    if report_errors(outcomes):
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        print(_ERRORS[options.format](errors), end="")
        return FAILED
    found = differences(selection, outcomes)
    if options.allow_edited:
        found = [each for each in found if each.state is not State.EDITED]
    print(_FORMATS[options.format](found, options.diff), end="")
    return 1 if found else 0


def _text(found: Sequence[Difference], diff: bool) -> str:
    lines = []
    for each in found:
        lines.append(f"{_shown(each.path)}: {each.state.value}: {each.why}; {_WAYS_OUT[each.state]}\n")
        lines += [each.diff()] if diff else []
    return "".join(lines)


def _github(found: Sequence[Difference], diff: bool) -> str:
    """Workflow commands: GitHub shows them in the change, at the line."""
    lines = []
    for each in found:
        message = f"{each.why}; {_WAYS_OUT[each.state]}" + (f"\n{each.diff()}" if diff else "")
        properties = {"file": _shown(each.path), "line": str(each.first_line), "title": f"tile2cu: {each.state.value}"}
        shown = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in properties.items())
        lines.append(f"::error {shown}::{_escaped(message)}\n")
    return "".join(lines)


def _escaped(text: str, more: str = "") -> str:
    """Text as a workflow command takes it."""
    for char in "%\r\n" + more:
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def _json(found: Sequence[Difference], diff: bool) -> str:
    entries = [
        {"path": _shown(each.path), "state": each.state.value, "why": each.why, "line": each.first_line}
        | ({"diff": each.diff()} if diff else {})
        for each in found
    ]
    return json.dumps({"format": 1, "tile2cu": VERSION, "same": not found, "differences": entries}, indent=1) + "\n"


def _sarif(found: Sequence[Difference], diff: bool) -> str:
    rules = [
        {"id": state.name, "shortDescription": {"text": f"generated file is {state.value}"}, "help": {"text": way}}
        for state, way in _WAYS_OUT.items()
    ]
    return _sarif_log(rules, [_result(each, diff) for each in found])


def _github_errors(errors: Sequence[Tile2CuError]) -> str:
    lines = []
    for error in errors:
        place = {"file": _shown(Path(error.span.file)), "line": str(error.span.line)} if error.span else {}
        properties = {**place, "title": f"tile2cu: {error.code}"}
        shown = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in properties.items())
        lines.append(f"::error {shown}::{_escaped(_message(error))}\n")
    return "".join(lines)


def _message(error: Tile2CuError) -> str:
    return f"{error.message}; {error.help}" if error.help else error.message


def _json_errors(errors: Sequence[Tile2CuError]) -> str:
    entries = [
        {"code": error.code, "message": error.message, "help": error.help}
        | ({"path": _shown(Path(error.span.file)), "line": error.span.line} if error.span else {})
        for error in errors
    ]
    found = {"format": 1, "tile2cu": VERSION, "same": False, "differences": [], "errors": entries}
    return json.dumps(found, indent=1) + "\n"


def _sarif_errors(errors: Sequence[Tile2CuError]) -> str:
    rules = [{"id": code, "shortDescription": {"text": CODES[code].title}} for code in sorted({e.code for e in errors})]
    results = [
        {"ruleId": error.code, "level": "error", "message": {"text": _message(error)}}
        | ({"locations": [_location(Path(error.span.file), error.span.line)]} if error.span else {})
        for error in errors
    ]
    return _sarif_log(rules, results)


def _sarif_log(rules: Sequence[object], results: Sequence[object]) -> str:
    driver = {"name": "tile2cu", "version": VERSION, "rules": rules}
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _location(path: Path, line: int) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": _shown(path)}, "region": {"startLine": line}}
    return {"physicalLocation": place}


def _result(each: Difference, diff: bool) -> dict[str, Any]:
    text = f"{each.state.value}: {each.why}; {_WAYS_OUT[each.state]}" + (f"\n{each.diff()}" if diff else "")
    return {
        "ruleId": each.state.name,
        "level": "error",
        "message": {"text": text},
        "locations": [_location(each.path, each.first_line)],
    }


def _shown(path: Path) -> str:
    """The path relative to the current folder, where it is below it."""
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


_FORMATS: dict[str, Callable[[Sequence[Difference], bool], str]] = {
    "text": _text,
    "github": _github,
    "json": _json,
    "sarif": _sarif,
}
# When not all is emitted; the diagnostics for people are on the standard error already.
_ERRORS: dict[str, Callable[[Sequence[Tile2CuError]], str]] = {
    "text": lambda errors: "",
    "github": _github_errors,
    "json": _json_errors,
    "sarif": _sarif_errors,
}
