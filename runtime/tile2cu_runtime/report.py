"""The report of a checked run, in terms of the Python source and of the emitted source."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tile2cu_runtime.errors import Tile2CuRuntimeError
from tile2cu_runtime.spec import Manifest


@dataclass(frozen=True)
class Place:
    """A line of the emitted source, and the Python line that it comes from (0: none or unknown)."""

    file: str
    line: int
    text: str = ""
    python_file: str = ""
    python_line: int = 0
    python_text: str = ""

    @property
    def name(self) -> str:
        """File name and line, of the Python source if it is known."""
        return f"{Path(self.python_file).name}:{self.python_line}" if self.python_line else f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A finding. `places` are its locations: of a race both accesses, this one first. `count` is the number of
    occurrences.
    """

    kind: str
    message: str
    count: int
    places: tuple[Place, ...]
    schedules: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(_finding_lines(self))


@dataclass(frozen=True, kw_only=True)
class SharedAccess:
    """The shared-memory requests of one line. `wavefronts` above `ideal` are bank conflicts; `bytes` per thread."""

    place: Place
    access: str
    bytes: int
    requests: int
    wavefronts: int
    ideal: int
    worst_ways: int

    @property
    def is_free_of_conflicts(self) -> bool:
        return self.wavefronts <= self.ideal

    def __str__(self) -> str:
        return (
            f"{self.place.name}: shared {self.access} of {self.bytes} bytes per thread: {self.requests} requests, "
            f"{self.wavefronts} wavefronts (ideal {self.ideal}), at worst {self.worst_ways}-way"
        )


@dataclass(frozen=True, kw_only=True)
class GlobalAccess:
    """The global-memory requests of one line: the 32-byte `sectors` accessed, and the minimum `ideal`."""

    place: Place
    access: str
    bytes: int
    requests: int
    sectors: int
    ideal: int

    def __str__(self) -> str:
        return (
            f"{self.place.name}: global {self.access} of {self.bytes} bytes per thread: {self.requests} requests, "
            f"{self.sectors} sectors (ideal {self.ideal})"
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """The engine's report of one call under all its schedules; statistics are those of the first one.

    `warnings` are reads of uninitialised MMA operands, which are faults only if a result depends on them. `omitted`
    counts findings beyond those that the engine lists; `switches` counts switches between threads. `unstable` names the
    arguments whose results differ between schedules: expected if a kernel adds floats atomically, suspicious otherwise.
    """

    kernel: str
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    omitted: int = 0
    switches: int = 0
    shared: tuple[SharedAccess, ...] = ()
    global_memory: tuple[GlobalAccess, ...] = ()
    schedules: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        """The findings and warnings, and a line that counts them. Statistics have their own string forms."""
        many = "1 finding" if len(self.findings) == 1 else f"{len(self.findings) or 'no'} findings"
        many += f" and {self.omitted} more" if self.omitted else ""
        if self.warnings:
            many += ", 1 warning" if len(self.warnings) == 1 else f", {len(self.warnings)} warnings"
        unstable = f"; results differ between schedules: {', '.join(self.unstable)}" if self.unstable else ""
        summary = f"{self.kernel}: {many} ({', '.join(self.schedules)}){unstable}"
        warnings = ("\n".join(_finding_lines(each, "warning")) for each in self.warnings)
        return "\n\n".join([*map(str, self.findings), *warnings, summary])


class CheckError(Tile2CuRuntimeError):
    """A checked run has findings, which are in `report`."""

    def __init__(self, report: Report) -> None:
        super().__init__("T2C-R300", f"the checked run of {report.kernel} has findings")
        self.report = report

    def __str__(self) -> str:
        return f"error[{self.code}]: {self.message}\n\n{self.report}"


@dataclass(frozen=True, kw_only=True)
class SourceMap:
    """Maps lines of the emitted source to Python lines, with the text of both.

    `python` is the source if it is available and unchanged since the transpilation. `trusted`: the emitted source is
    unmodified, so that the manifest's lines are valid; an edited source has no Python lines.
    """

    manifest: Manifest
    text: str
    python: str
    python_file: str
    trusted: bool

    @staticmethod
    def of(manifest: Manifest, folder: Path, source: Path | None = None) -> SourceMap:
        """The map of the emitted kernel in a folder. `source` is the Python file, if it has moved."""
        content = (folder / manifest.text_file).read_bytes()
        usual = [folder / manifest.source_file, Path(manifest.source_file)]
        path = _find_source(manifest, [source] if source else usual)
        return SourceMap(
            manifest=manifest,
            text=content.decode("utf-8", "replace"),
            python=path.read_text(encoding="utf-8") if path else "",
            python_file=str(path or manifest.source_file),
            trusted=hashlib.sha256(content).hexdigest() == dict(manifest.files)[manifest.text_file],
        )

    def place(self, file: str, line: int) -> Place:
        """The place of a file and line from the debug information."""
        name = Path(file).name
        if name == self.manifest.source_file:  # a source with #line directives
            return Place(name, line, "", self.python_file, line, _line(self.python, line))
        if name != self.manifest.text_file:
            return Place(name, line)
        python_line = self.manifest.python_line(line) if self.trusted else 0
        return Place(
            file=name,
            line=line,
            text=_line(self.text, line),
            python_file=self.python_file if python_line else "",
            python_line=python_line,
            python_text=_line(self.python, python_line),
        )

    def in_python_terms(self, message: str) -> str:
        """The message with lines of the emitted source replaced by Python lines."""
        file = self.manifest.text_file
        return re.sub(rf"\b{re.escape(file)}:(\d+)", lambda found: self.place(file, int(found[1])).name, message)


def read_report(reports: Sequence[tuple[str, Mapping[str, Any]]], source_map: SourceMap) -> Report:
    """The report of one call from the engine's reports, one per schedule."""
    schedules: list[str] = []
    omitted = 0
    first: Mapping[str, Any] = {}
    for schedule, data in reports:
        schedules.append(schedule)
        first = first or data.get("statistics", {})
        omitted += int(data.get("findings_omitted", 0))
    return Report(
        kernel=source_map.manifest.kernel,
        findings=_merged(reports, "findings", source_map),
        warnings=_merged(reports, "warnings", source_map),
        omitted=omitted,
        switches=int(first.get("switches", 0)),
        shared=tuple(_shared(row, source_map) for row in first.get("shared", ())),
        global_memory=tuple(_global(row, source_map) for row in first.get("global", ())),
        schedules=tuple(schedules),
    )


def _merged(reports: Sequence[tuple[str, Mapping[str, Any]]], key: str, source_map: SourceMap) -> tuple[Finding, ...]:
    """The findings, or warnings, of all schedules; the same fault under several of them is one."""
    found: dict[tuple[object, ...], Finding] = {}
    for schedule, data in reports:
        kind = {"findings": "uninitialised shared read", "warnings": "uninitialised MMA operand"}[key]
        stale = (flow for flow in _stale(data, source_map) if flow.kind == kind)
        for finding in (*_findings(data.get(key, ()), source_map), *stale):
            same = (finding.kind, finding.places)
            old = found.get(same)
            found[same] = Finding(
                kind=finding.kind,
                message=old.message if old else finding.message,
                count=finding.count + (old.count if old else 0),
                places=finding.places,
                schedules=(*(old.schedules if old else ()), schedule),
            )
    return tuple(found.values())


def _stale(data: Mapping[str, Any], source_map: SourceMap) -> Iterator[Finding]:
    """The reads of what was written in another lifetime of shared memory that tiles have one after the other."""
    launch = source_map.manifest.launch
    for flow in _findings(data.get("flows", ()), source_map):
        lifetimes = {launch.lifetime(place.python_line) for place in flow.places}
        if len(lifetimes) == 2 and None not in lifetimes:
            yield flow


def _findings(rows: Iterable[Mapping[str, Any]], source_map: SourceMap) -> Iterator[Finding]:
    for row in rows:
        places = tuple(source_map.place(p["file"], int(p["line"])) for p in row.get("places", ()))
        message = source_map.in_python_terms(str(row["message"]))
        yield Finding(kind=row["kind"], message=message, count=int(row.get("count", 1)), places=places)


def _shared(row: Mapping[str, Any], source_map: SourceMap) -> SharedAccess:
    return SharedAccess(
        place=_row_place(row, source_map),
        access=str(row.get("access", "")),
        bytes=int(row.get("bytes", 0)),
        requests=int(row.get("requests", 0)),
        wavefronts=int(row.get("wavefronts", 0)),
        ideal=int(row.get("ideal", 0)),
        worst_ways=int(row.get("worst_ways", 1)),
    )


def _global(row: Mapping[str, Any], source_map: SourceMap) -> GlobalAccess:
    return GlobalAccess(
        place=_row_place(row, source_map),
        access=str(row.get("access", "")),
        bytes=int(row.get("bytes", 0)),
        requests=int(row.get("requests", 0)),
        sectors=int(row.get("sectors", 0)),
        ideal=int(row.get("ideal", 0)),
    )


def _row_place(row: Mapping[str, Any], source_map: SourceMap) -> Place:
    place = row.get("place") or {}
    return source_map.place(str(place.get("file", "?")), int(place.get("line", 0)))


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _find_source(manifest: Manifest, candidates: Iterable[Path]) -> Path | None:
    """The first file that is byte for byte the transpiled source."""
    for path in candidates:
        try:
            if hashlib.sha256(path.read_bytes()).hexdigest() == manifest.source_sha256:
                return path
        except OSError:
            continue
    return None


def _finding_lines(finding: Finding, severity: str = "error") -> Iterator[str]:
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    yield f"{severity}[{finding.kind}]: {finding.message}{times}"
    for number, place in enumerate(finding.places):
        yield from _place_lines(place, arrow="-->" if number == 0 else ":::")


def _place_lines(place: Place, arrow: str) -> Iterator[str]:
    """The Python line with its text, followed by the line of the emitted source; only the latter if there is no
    Python line.
    """
    file, line, text = place.python_file, place.python_line, place.python_text
    if not line:
        file, line, text = place.file, place.line, place.text
    gutter = " " * len(str(line))
    yield f"{gutter}{arrow} {file}:{line}"
    if text:
        yield f"{gutter} |"
        yield f"{line} | {text.rstrip()}"
    if place.python_line:
        yield f"{gutter} = {place.file}:{place.line}: {place.text.strip()}"
