"""What a run of a kernel on the CPU engine shows: findings of its checks, and accesses by Python line."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tile2cu.core.record import Record
from tile2cu_runtime.report import Finding, GlobalAccess, Report, SharedAccess


class Access(Record, frozen=True, kw_only=True):
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


# What is checked, and the words by which a finding belongs to it; the first that fits.
_CHECKS = (
    ("races between threads, and between blocks", r"^race"),
    ("barriers and deadlocks", r"barrier|__syncthreads|deadlock|cluster (arrival|wait)"),
    ("asynchronous copies, MMAs and their fences", r"async|wgmma|TMA|fence|in.flight|accumulator"),
    ("warp collectives and their alignment", r"collective|shuffle|matrix|ds_read|global_load_lds"),
    ("accesses out of bounds, misaligned, or of exited blocks", r"bounds|misaligned|address|exited|between blocks"),
    ("reads of uninitialised memory", r"uninitialised"),
    ("the launch, and the kernel's assertions", r""),
)


class Check(Record, frozen=True, kw_only=True):
    """What a run checks, and its findings as text."""

    name: str
    findings: tuple[str, ...]


class Execution(Record, frozen=True, kw_only=True):
    """A run: its sizes, the schedules, the checks with their findings, and the accesses in the order of the lines."""

    sizes: str
    schedules: str
    checks: tuple[Check, ...]
    findings: tuple[str, ...]
    warnings: tuple[str, ...]
    accesses: tuple[Access, ...]


def executed(report: Report, sizes: Mapping[str, Any]) -> Execution:
    """The run that the engine reports, of a call with these sizes."""
    return Execution(
        sizes=", ".join(f"{name} = {value}" for name, value in sizes.items()),
        schedules=", ".join(report.schedules),
        checks=tuple(_checks(report.findings)),
        findings=tuple(map(str, report.findings)),
        warnings=tuple(map(str, report.warnings)),
        accesses=tuple(sorted(_accesses(report.shared, report.global_memory), key=lambda each: each.line)),
    )


def _checks(findings: Sequence[Finding]) -> list[Check]:
    """All checks in their order."""
    found: dict[str, list[str]] = {name: [] for name, _ in _CHECKS}
    for each in findings:
        found[next(name for name, words in _CHECKS if re.search(words, each.kind))].append(str(each))
    return [Check(name=name, findings=tuple(texts)) for name, texts in found.items()]


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
