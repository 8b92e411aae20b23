"""Errors and warnings as text, as workflow commands of GitHub, as JSON and as SARIF."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile2cu.cli.colour import coloured
from tile2cu.core.codes import CODES
from tile2cu.core.errors import Tile2CuError, Tile2CuWarning
from tile2cu.core.span import Span
from tile2cu.version import VERSION
from tile2cu_runtime.errors import Error

if TYPE_CHECKING:
    from tile2cu.emitter import Emitted
    from tile2cu.project.job import Outcome

Diagnostic = Error | Tile2CuWarning
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def level(found: Diagnostic) -> str:
    """What a diagnostic is, in the words of SARIF and GitHub."""
    return "error" if isinstance(found, Error) else "warning"


def as_text(found: Sequence[Diagnostic]) -> str:
    """For a terminal, an empty line between two."""
    return "".join(f"{rendered(each)}\n\n" for each in found)[:-1]


def rendered(found: Diagnostic) -> str:
    """A diagnostic for a terminal, without colour."""
    return found.render() if isinstance(found, Tile2CuError | Tile2CuWarning) else str(found)


def span_of(found: Diagnostic) -> Span | None:
    """The place of a diagnostic; those of the runtime have none."""
    return found.span if isinstance(found, Tile2CuError | Tile2CuWarning) else None


def as_github(found: Sequence[Diagnostic]) -> str:
    """Workflow commands: GitHub shows them in the change, at the line."""
    lines = []
    for each in found:
        span = span_of(each)
        place = {"file": shown_path(Path(span.file)), "line": str(span.line)} if span else {}
        lines.append(workflow_command(level(each), {**place, "title": f"tile2cu: {each.code}"}, _message(each)))
    return "".join(lines)


def as_data(found: Sequence[Diagnostic]) -> dict[str, list[dict[str, Any]]]:
    """For JSON: the errors and the warnings; each with path and line where it has a place."""
    parts: dict[str, list[dict[str, Any]]] = {"errors": [], "warnings": []}
    for each in found:
        span = span_of(each)
        place: dict[str, Any] = {"path": shown_path(Path(span.file)), "line": span.line} if span else {}
        parts[f"{level(each)}s"].append({"code": each.code, "message": each.message, "help": each.help} | place)
    return parts


def as_json(found: Sequence[Diagnostic]) -> str:
    """One object, with the errors and the warnings."""
    return json.dumps({"format": 1, "tile2cu": VERSION, **as_data(found)}, indent=1) + "\n"


def as_sarif(found: Sequence[Diagnostic]) -> str:
    """A log of SARIF 2.1.0, one result per diagnostic."""
    return sarif_log(sarif_rules(found), list(map(sarif_result, found)))


FORMATS: Mapping[str, Callable[[Sequence[Diagnostic]], str]] = {
    "text": as_text,
    "github": as_github,
    "json": as_json,
    "sarif": as_sarif,
}


def add_format(parser: argparse.ArgumentParser) -> None:
    """--format and -Werror."""
    help = "how errors and warnings are printed: text on the standard error (default), others on the standard output"
    parser.add_argument("--format", choices=sorted(FORMATS), default="text", help=help)
    add_werror(parser)


def add_werror(parser: argparse.ArgumentParser) -> None:
    """-Werror."""
    parser.add_argument("-Werror", dest="werror", action="store_true", help="make warnings errors: nothing is written")


def diagnostics_of(outcomes: Iterable[Outcome], *, werror: bool) -> list[Diagnostic]:
    """The errors and the warnings of jobs, in their order, each once."""
    found: list[Diagnostic] = []
    for outcome in outcomes:
        found += [outcome.error] if outcome.error is not None else []
        found += given(outcome.emitted, werror=werror)
    return list({rendered(each): each for each in found}.values())


def given(emitted: Iterable[Emitted], *, werror: bool) -> list[Diagnostic]:
    """The warnings about kernels, as errors with -Werror."""
    warnings = [warning for one in emitted for warning in one.warnings]
    return [warning.as_error() if werror else warning for warning in warnings]


def is_error(found: Diagnostic) -> bool:
    """Whether a diagnostic prevents that files are written."""
    return isinstance(found, Error)


def report(found: Sequence[Diagnostic], form: str, *, to_stderr: bool = False) -> None:
    """Prints diagnostics: as text on the standard error, else on the standard output."""
    stream = sys.stderr if to_stderr or form == "text" else sys.stdout
    said = FORMATS[form](found)
    print(coloured(said, stream) if form == "text" else said, end="", file=stream)


def sarif_rules(found: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    """The codes of diagnostics as rules of SARIF."""
    return [{"id": code, "shortDescription": {"text": CODES[code].title}} for code in sorted({e.code for e in found})]


def sarif_result(found: Diagnostic) -> dict[str, Any]:
    """A diagnostic as a result of SARIF."""
    span = span_of(found)
    place = {"locations": [location(Path(span.file), span.line)]} if span else {}
    return {"ruleId": found.code, "level": level(found), "message": {"text": _message(found)}, **place}


def sarif_log(rules: Sequence[object], results: Sequence[object]) -> str:
    """A log of SARIF 2.1.0 with one run."""
    driver = {"name": "tile2cu", "version": VERSION, "rules": rules}
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def location(path: Path, line: int) -> dict[str, Any]:
    """A line of a file as a location of SARIF."""
    place = {"artifactLocation": {"uri": shown_path(path)}, "region": {"startLine": line}}
    return {"physicalLocation": place}


def workflow_command(command: str, properties: Mapping[str, str], message: str) -> str:
    """A workflow command of GitHub, with its newline."""
    shown = ",".join(f"{key}={escaped(value, ':,')}" for key, value in properties.items())
    return f"::{command} {shown}::{escaped(message)}\n"


def escaped(text: str, more: str = "") -> str:
    """Text as a workflow command takes it."""
    for char in "%\r\n" + more:
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def shown_path(path: Path) -> str:
    """The path relative to the current folder, where it is below it."""
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


def _message(found: Diagnostic) -> str:
    return f"{found.message}; {found.help}" if found.help else found.message
