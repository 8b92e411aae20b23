"""Waves that are at the same instruction: their state in arrays with an axis for the wave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tile2cu_runtime.amdgcn.arrays import U16, Array, lanes_of_pair
from tile2cu_runtime.amdgcn.instruction import EXEC, Instruction

if TYPE_CHECKING:
    from tile2cu_runtime.amdgcn.batch import Batch

Step = Callable[["Cohort"], None]
Getter = Callable[["Cohort"], Array]


@dataclass(kw_only=True)
class Transfer:
    """A memory operation that has been issued and not yet waited for.

    `land` writes its result: `values` (words, waves, lanes) to the registers in `registers` (a bit set, see
    Operand.register_bits), or to LDS at the byte offsets `at`. An LDS access keeps `at`, `width`, `aligned` and
    `writes_lds`, because for the race check it may happen after a later barrier. `unordered`: it may return before
    earlier ones. `holds` counts the queues that contain it.
    """

    instruction: Instruction
    registers: int = 0
    land: Callable[[Cohort, Transfer], None] | None = None
    values: Array | None = None
    mask: Array | None = None
    at: Array | None = None
    width: int = 0
    aligned: bool = False
    is_lds: bool = False
    writes_lds: bool = False
    unordered: bool = False
    holds: int = 1

    def of_waves(self, chosen: Array) -> Transfer:
        """The same for a subset of the waves."""
        return replace(
            self,
            values=None if self.values is None else self.values[:, chosen],
            mask=None if self.mask is None else self.mask[chosen],
            at=None if self.at is None else self.at[chosen],
        )


class Cohort:
    """Waves in lockstep.

    `vgpr` is (rows, waves, 64) uint32, accumulation registers after the others; `sgpr` (128, waves, 1) uint32; `scc`
    (waves, 1) bool; `exec` (waves, 64) bool, and `full` whether all of it is set; `wave` the waves' indices in the
    batch, (waves,), `owner` that plus 1; `vm` and `lgkm` the queues that s_waitcnt counts, oldest first; `pending` the
    registers with outstanding loads.
    """

    __slots__ = ("batch", "exec", "full", "lgkm", "owner", "pc", "pending", "scc", "sgpr", "vgpr", "vm", "wave")

    def __init__(self, batch: Batch, wave: Array, vgpr: Array, sgpr: Array, scc: Array, pc: int) -> None:
        self.batch = batch
        self.wave = wave
        self.owner: Array = (wave + 1).astype(U16)[:, None]
        self.vgpr, self.sgpr, self.scc, self.pc = vgpr, sgpr, scc, pc
        self.vm: list[Transfer] = []
        self.lgkm: list[Transfer] = []
        self.pending = 0
        self.exec_changed()

    def __len__(self) -> int:
        return len(self.wave)

    def exec_changed(self) -> None:
        """Must be called after writes to the scalar registers of EXEC."""
        self.exec: Array = lanes_of_pair(self.sgpr[EXEC], self.sgpr[EXEC + 1])
        self.full = bool(self.exec.all())

    def issue(self, transfer: Transfer, *queues: list[Transfer]) -> None:
        """Appends a memory operation to the queues that count it."""
        transfer.holds = len(queues)
        for queue in queues:
            queue.append(transfer)
        self.pending |= transfer.registers

    def wait(self, vm: int | None, lgkm: int | None) -> None:
        """s_waitcnt: completes the operations that must have returned when at most the given numbers are
        outstanding.
        """
        if vm is not None:
            self.vm = self._drained(self.vm, vm)
        if lgkm is not None:
            self.lgkm = self._drained(self.lgkm, lgkm)
        self.pending = 0
        for transfer in (*self.vm, *self.lgkm):
            self.pending |= transfer.registers

    def _drained(self, queue: list[Transfer], left: int) -> list[Transfer]:
        """Completes the oldest operations; with unordered operations in the queue, only those that must have
        returned.
        """
        certain = len(queue) - left
        if left:
            certain -= sum(transfer.unordered for transfer in queue)
        rest = []
        for transfer in queue:
            if certain <= 0 or (left and transfer.unordered):
                rest.append(transfer)
                continue
            certain -= 1
            transfer.holds -= 1
            if transfer.holds == 0 and transfer.land:
                transfer.land(self, transfer)
        return rest

    def select(self, chosen: Array) -> Cohort:
        """A cohort of some of the waves; `chosen` are positions, (waves,) int."""
        part = Cohort(
            self.batch, self.wave[chosen], self.vgpr[:, chosen], self.sgpr[:, chosen], self.scc[chosen], self.pc
        )
        copies = {id(transfer): transfer.of_waves(chosen) for transfer in (*self.vm, *self.lgkm)}
        part.vm = [copies[id(transfer)] for transfer in self.vm]
        part.lgkm = [copies[id(transfer)] for transfer in self.lgkm]
        part.pending = self.pending
        return part

    def can_join(self, other: Cohort) -> bool:
        """Whether both are at the same instruction with the same operations outstanding."""
        return self.pc == other.pc and _outline(self) == _outline(other)


def _outline(cohort: Cohort) -> list[tuple[int, bool]]:
    """The properties of two queues that must agree for their waves to be joined."""
    queues = (cohort.vm, cohort.lgkm)
    return [(transfer.instruction.address, queue is cohort.vm) for queue in queues for transfer in queue]


def join(cohorts: Sequence[Cohort]) -> Cohort:
    """One cohort from cohorts that can join, in the order of their waves."""
    order = np.argsort(np.concatenate([cohort.wave for cohort in cohorts]))

    def together(arrays: Sequence[Array], axis: int) -> Array:
        return np.concatenate(arrays, axis=axis).take(order, axis=axis)

    whole = Cohort(
        cohorts[0].batch,
        together([cohort.wave for cohort in cohorts], 0),
        together([cohort.vgpr for cohort in cohorts], 1),
        together([cohort.sgpr for cohort in cohorts], 1),
        together([cohort.scc for cohort in cohorts], 0),
        cohorts[0].pc,
    )
    merged: dict[int, Transfer] = {}
    for name in ("vm", "lgkm"):
        for parts in zip(*(getattr(cohort, name) for cohort in cohorts), strict=True):
            if id(parts[0]) not in merged:
                merged[id(parts[0])] = _joined(parts, cohorts, order)
            getattr(whole, name).append(merged[id(parts[0])])
    whole.pending = cohorts[0].pending
    return whole


def _joined(parts: Sequence[Transfer], cohorts: Sequence[Cohort], order: Array) -> Transfer:
    first = parts[0]
    masks = [
        np.ones_like(part.at if part.at is not None else cohort.exec, bool) if part.mask is None else part.mask
        for part, cohort in zip(parts, cohorts, strict=True)
    ]
    values = [part.values for part in parts if part.values is not None]
    places = [part.at for part in parts if part.at is not None]
    return replace(
        first,
        mask=np.concatenate(masks)[order],
        values=np.concatenate(values, axis=1)[:, order] if values else None,
        at=np.concatenate(places)[order] if places else None,
    )
