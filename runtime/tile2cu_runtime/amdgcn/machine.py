"""Runs the waves of a batch to completion.

All waves at the same instruction form one cohort and run in lockstep. A divergent branch splits it; the cohort with the
lowest address runs first, and cohorts at the same instruction are joined. At a barrier a cohort waits until no other
can run: then every live wave of every workgroup has arrived.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.amdgcn.batch import Batch
from tile2cu_runtime.amdgcn.block import Block, Program
from tile2cu_runtime.amdgcn.cohort import Cohort, join
from tile2cu_runtime.amdgcn.errors import SimulatorError
from tile2cu_runtime.amdgcn.instructions.control import BARRIER, FINISH

# The number of steps after which a cohort that is ahead runs: another one's loop may wait for it.
_PATIENCE = 256


class Machine:
    """`limit`: wave instructions after which a launch is aborted. `executed`: the number of waves that ran each
    block.
    """

    def __init__(self, program: Program, limit: int) -> None:
        self._program = program
        self._left = limit
        self.executed: Counter[int] = Counter()
        self._turns = 0

    def run(self, batch: Batch, start: Cohort) -> None:
        """Runs until all waves have ended."""
        runnable: list[Cohort] = [start]
        parked: list[Cohort] = []
        while runnable or parked:
            if not runnable:
                self._pass_barrier(batch, parked)
                runnable, parked = joined(parked), []
            cohort = self._next(runnable)
            for stopped, at_barrier in self._run(cohort, alone=not runnable):
                (parked if at_barrier else runnable).append(stopped)
            if len(runnable) > 1:
                runnable = joined(runnable)
        self._pass_barrier(batch, [])

    def _next(self, runnable: list[Cohort]) -> Cohort:
        """Takes the cohort with the lowest address; periodically the one that has waited longest."""
        self._turns += 1
        if self._turns % _PATIENCE == 0:
            return runnable.pop(0)
        return runnable.pop(min(range(len(runnable)), key=lambda number: runnable[number].pc))

    def _run(self, cohort: Cohort, *, alone: bool) -> list[tuple[Cohort, bool]]:
        """Runs a cohort for one block, or as long as it is the only one and complete; returns what remains of it."""
        while True:
            block = self._program.block(cohort.pc)
            self._execute(block, cohort)
            if block.end.kind == FINISH:
                cohort.wait(0, 0)
                return []
            assert block.end.jump is not None
            to = block.end.jump(cohort)
            if block.end.kind == BARRIER:
                assert isinstance(to, int)
                cohort.pc = to
                return [(cohort, True)]
            if not isinstance(to, int):
                return [(part, False) for part in divided(cohort, to)]
            cohort.pc = to
            if not alone:
                return [(cohort, False)]

    def _execute(self, block: Block, cohort: Cohort) -> None:
        self.executed[cohort.pc] += len(cohort)
        self._left -= len(cohort) * len(block.instructions)
        if self._left < 0:
            raise SimulatorError(f"the launch exceeds the instruction limit, at {cohort.pc:#x}")
        batch = cohort.batch
        if not batch.check:
            for _, step, _ in block.steps:
                step(cohort)
            return
        for touches, step, instruction in block.steps:
            if cohort.pending & touches:
                batch.report_missing_wait(cohort, instruction, touches)
            step(cohort)

    @staticmethod
    def _pass_barrier(batch: Batch, parked: list[Cohort]) -> None:
        """Ends the interval of the race check. LDS accesses that are not waited for may happen after the barrier."""
        for race in batch.lds.end_interval():
            batch.report_race(race)
        for cohort in parked:
            for transfer in cohort.lgkm:
                if transfer.is_lds:
                    batch.lds.log(cohort, transfer)


def divided(cohort: Cohort, to: Array) -> list[Cohort]:
    """The cohort's waves by target address, (waves,) addresses."""
    parts = []
    for address in np.unique(to):
        part = cohort.select(np.flatnonzero(to == address))
        part.pc = int(address)
        parts.append(part)
    return parts


def joined(cohorts: list[Cohort]) -> list[Cohort]:
    """The cohorts, with those that can join as one."""
    groups: list[list[Cohort]] = []
    for cohort in cohorts:
        group = next((group for group in groups if group[0].can_join(cohort)), None)
        if group is None:
            groups.append([cohort])
        else:
            group.append(cohort)
    return [group[0] if len(group) == 1 else join(group) for group in groups]
