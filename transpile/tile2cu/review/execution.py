"""What a run of a kernel on the CPU engine shows: findings of its checks, and accesses by Python line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tile2cu_runtime.report import GlobalAccess, Report, SharedAccess


@dataclass(frozen=True, kw_only=True)
class Access:
    """The requests of a Python line to one memory: `units` are wavefronts (shared) or 32-byte sectors (global).

    `ideal` is how many there would be without bank conflicts, or with every byte of a sector used.
    """

    line: int
    memory: str
    access: str
    bytes: int
    requests: int
    units: int
    ideal: int
    note: str = ""

    @property
    def excess(self) -> float:
        """How many times as many units as needed; 1 is ideal."""
        return self.units / max(self.ideal, 1)


@dataclass(frozen=True, kw_only=True)
class Execution:
    """A run: its sizes, the schedules, the findings as text, and the accesses in the order of the lines."""

    sizes: str
    schedules: str
    findings: tuple[str, ...]
    warnings: tuple[str, ...]
    accesses: tuple[Access, ...]


def executed(report: Report, sizes: Mapping[str, Any]) -> Execution:
    """The run that the engine reports, of a call with these sizes."""
    return Execution(
        sizes=", ".join(f"{name} = {value}" for name, value in sizes.items()),
        schedules=", ".join(report.schedules),
        findings=tuple(map(str, report.findings)),
        warnings=tuple(map(str, report.warnings)),
        accesses=tuple(sorted(_accesses(report.shared, report.global_memory), key=lambda each: each.line)),
    )


def _accesses(shared: Sequence[SharedAccess], global_memory: Sequence[GlobalAccess]) -> list[Access]:
    """The rows, those of one line and kind added up: loops and libraries access memory at several emitted lines."""
    found: dict[tuple[int, str, str, int], Access] = {}
    for one in shared:
        note = "" if one.is_free_of_conflicts else f"at worst {one.worst_ways}-way bank conflicts"
        _add(found, one, "shared", one.wavefronts, note)
    for other in global_memory:
        _add(found, other, "global", other.sectors, "")
    return list(found.values())


def _add(
    found: dict[tuple[int, str, str, int], Access],
    one: SharedAccess | GlobalAccess,
    memory: str,
    units: int,
    note: str,
) -> None:
    key = (one.place.python_line, memory, one.access, one.bytes)
    before = found.get(key)
    found[key] = Access(
        line=key[0],
        memory=memory,
        access=one.access,
        bytes=one.bytes,
        requests=one.requests + (before.requests if before else 0),
        units=units + (before.units if before else 0),
        ideal=one.ideal + (before.ideal if before else 0),
        note=max(note, before.note if before else ""),
    )
