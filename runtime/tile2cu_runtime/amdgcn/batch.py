"""Workgroups that are simulated together: their memory, and the recorder of their findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I64, LANES, U32, Array
from tile2cu_runtime.amdgcn.byte_store import ByteStore
from tile2cu_runtime.amdgcn.cohort import Cohort
from tile2cu_runtime.amdgcn.findings import (
    LDS_RACE,
    MISSING_WAIT,
    OUT_OF_BOUNDS,
    CodePlace,
    Recorder,
    SimulatorFinding,
)
from tile2cu_runtime.amdgcn.global_memory import BASE, GlobalMemory
from tile2cu_runtime.amdgcn.instruction import Instruction
from tile2cu_runtime.amdgcn.lds import Lds, Race

# Formats a message from the wave's index in the cohort and the lane.
Message = Callable[[int, int], str]


@dataclass(kw_only=True)
class Batch:
    """`workgroups` are their ids in order; wave w of the batch belongs to workgroup w // waves_per_group.

    `scratch` holds the lanes' private memories consecutively; `code_base` is the address of the code object;
    `global_lines` counts cache lines, only with `measure`.
    """

    kernel: str
    workgroups: list[tuple[int, int, int]]
    waves_per_group: int
    memory: GlobalMemory
    lds: Lds
    scratch: ByteStore
    scratch_bytes: int
    recorder: Recorder
    place: Callable[[Instruction], CodePlace]
    check: bool
    measure: bool
    code_base: int
    global_lines: int = 0

    # ---- memory ---------------------------------------------------------------------------------------------

    def global_place(
        self, cohort: Cohort, instruction: Instruction, address: Array, width: int, mask: Array | None
    ) -> tuple[Array, Array | None]:
        """Addresses as offsets into the arena, and which lanes are active and inside a buffer (None: all).

        Out-of-bounds lanes are a finding; they read poison and write nothing.
        """
        at = address.astype(I64, copy=False) - I64(BASE)
        if mask is not None:
            if not mask.any():
                return np.zeros_like(at), mask
            at = np.where(mask, at, at[mask][0])
        if self.memory.is_inside(int(at.min()), int(at.max()) + width):
            return at, mask
        inside = self.memory.inside(at, width)
        bad = ~inside if mask is None else mask & ~inside
        if not bad.any():
            return at, mask
        self.report(
            OUT_OF_BOUNDS, cohort, instruction, bad,
            lambda wave, lane: f"{width} bytes at {self.memory.describe(int(at[wave, lane]))}",
        )  # fmt: skip
        return np.where(inside, at, 0), inside if mask is None else mask & inside

    @property
    def has_scratch(self) -> bool:
        """Whether the kernel has private memory."""
        return self.scratch_bytes > 0

    def scratch_place(self, cohort: Cohort, offset: Array) -> Array:
        """The offset in `scratch` of each lane's private byte `offset`, (waves, 64)."""
        lane = cohort.wave[:, None].astype(I64) * 64 + LANES
        result: Array = lane * self.scratch_bytes + np.clip(offset, 0, max(0, self.scratch_bytes - 16))
        return result

    # ---- findings -------------------------------------------------------------------------------------------

    def report(
        self, kind: str, cohort: Cohort, instruction: Instruction, bad: Array, message: Message,
        other: Instruction | None = None,
    ) -> None:  # fmt: skip
        """Reports a fault in the lanes `bad`, (waves, 64) or (waves, 1)."""
        position, lane = (int(first) for first in np.argwhere(bad)[0])
        self._add(
            kind, message(position, lane), int(cohort.wave[position]), lane % 64, instruction, other, int(bad.sum())
        )

    def report_missing_wait(self, cohort: Cohort, instruction: Instruction, touches: int) -> None:
        """Reports an access to a register whose load is outstanding."""
        waited = next(transfer for transfer in (*cohort.vm, *cohort.lgkm) if transfer.registers & touches)
        counter = "vmcnt" if waited in cohort.vm else "lgkmcnt"
        message = f"no s_waitcnt {counter} between the load and the use of {_register_name(waited.registers & touches)}"
        self._add(MISSING_WAIT, message, int(cohort.wave[0]), 0, instruction, waited.instruction, len(cohort))

    def report_race(self, race: Race) -> None:
        """Reports unordered accesses of two waves of a workgroup to one byte of LDS."""
        verb = "writes" if race.writes else "reads"
        mine, theirs = race.first_wave % self.waves_per_group, race.second_wave % self.waves_per_group
        message = f"wave {mine} {verb} LDS byte {race.byte}, which wave {theirs} writes without a barrier between them"
        self._add(LDS_RACE, message, race.first_wave, 0, race.first, race.second, race.count)

    def _add(
        self, kind: str, message: str, wave: int, lane: int, at: Instruction, other: Instruction | None, count: int
    ) -> None:
        self.recorder.add(
            SimulatorFinding(
                kind=kind,
                message=message,
                kernel=self.kernel,
                workgroup=self.workgroups[wave // self.waves_per_group],
                wave=wave % self.waves_per_group,
                lane=lane,
                place=self.place(at),
                other=self.place(other) if other else None,
                count=count,
            )  # fmt: skip
        )

    # ---- figures --------------------------------------------------------------------------------------------

    def count_lines(self, at: Array, width: int, mask: Array | None, line: int) -> None:
        """Adds to `global_lines` the number of lines of `line` bytes that each wave's request accesses."""
        if not self.measure:
            return
        first, last = at // line, (at + width - 1) // line
        touched = np.concatenate((first, last), axis=1)
        if mask is not None:
            touched = np.where(np.concatenate((mask, mask), axis=1), touched, -1)
        touched = np.sort(touched, axis=1)
        new = touched[:, 1:] != touched[:, :-1]
        lines = int(new.sum()) + int((touched[:, 0] >= 0).sum())
        self.global_lines += lines


def _register_name(registers: int) -> str:
    """The lowest register of a bit set, as in the disassembly."""
    number = (registers & -registers).bit_length() - 1
    kind, first = ("v", 0) if number < 256 else ("a", 256) if number < 512 else ("s", 512)
    return f"{kind}{number - first}"


def poisoned_registers(rows: int, waves: int) -> Array:
    """Vector registers that are NaN as float32, float16 pairs and bfloat16 pairs."""
    return np.full((rows, waves, 64), 0xFFFFFDEB, U32)
