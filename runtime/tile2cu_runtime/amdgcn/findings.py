"""The findings of a simulated launch, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

OUT_OF_BOUNDS = "out-of-bounds"
LDS_OUT_OF_BOUNDS = "lds-out-of-bounds"
MISSING_WAIT = "missing-waitcnt"
LDS_RACE = "lds-race"
LDS_UNINITIALIZED = "lds-uninitialized"


@dataclass(frozen=True, kw_only=True)
class CodePlace:
    """An instruction: its address in the code object, its text, and its source line if there is line information.

    `frames` are file and line of the instruction and of the inlined calls, innermost first.
    """

    pc: int
    instruction: str
    frames: tuple[tuple[str, int], ...] = ()

    @property
    def file(self) -> str:
        return self.frames[0][0] if self.frames else ""

    @property
    def line(self) -> int:
        return self.frames[0][1] if self.frames else 0

    def __str__(self) -> str:
        source = f" ({self.file}:{self.line})" if self.line else ""
        return f"{self.pc:#x}: {self.instruction}{source}"


@dataclass(frozen=True, kw_only=True)
class SimulatorFinding:
    """A fault of the kernel at its first occurrence. `count` is in lanes, over the launch.

    `place` is the reported access; `other` the second one of the conflict, if any: the outstanding load, or the other
    wave's access.
    """

    kind: str
    message: str
    kernel: str
    workgroup: tuple[int, int, int]
    wave: int
    lane: int
    place: CodePlace
    other: CodePlace | None = None
    count: int = 1

    def __str__(self) -> str:
        where = f"{self.kernel}, workgroup {self.workgroup}, wave {self.wave}, lane {self.lane}"
        lines = [f"error[{self.kind}]: {self.message}", f"  --> {self.place}"]
        lines += [f"  ::: {self.other}"] if self.other else []
        return "\n".join([*lines, f"  in {where}" + (f"; {self.count} lanes in all" if self.count > 1 else "")])


class Recorder:
    """Collects findings; one finding per kind and pair of places."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, int], SimulatorFinding] = {}

    def add(self, finding: SimulatorFinding) -> None:
        key = (finding.kind, finding.place.pc, finding.other.pc if finding.other else -1)
        old = self._found.get(key)
        self._found[key] = replace(old, count=old.count + finding.count) if old else finding

    def findings(self) -> Sequence[SimulatorFinding]:
        return tuple(self._found.values())
