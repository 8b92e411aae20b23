"""The workgroups' LDS, and its checks: bounds, unwritten reads, races between waves.

Two accesses of different waves to the same byte without a barrier in between, one of them a write, are a race. The
accesses between two barriers are recorded and compared at the second, so their order in the simulation does not matter.
Atomics race with plain writes only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I64, U16, U64, Array, round_up
from tile2cu_runtime.amdgcn.byte_store import ByteStore, is_aligned
from tile2cu_runtime.amdgcn.cohort import Cohort, Transfer
from tile2cu_runtime.amdgcn.findings import LDS_OUT_OF_BOUNDS, LDS_UNINITIALIZED
from tile2cu_runtime.amdgcn.instruction import Instruction
from tile2cu_runtime.amdgcn.lds_banks import BankUse, bank_use

_SHIFTS = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}
# A workgroup's LDS begins at the first bank.
_ALL_BANKS_BYTES = 256
# Unwritten LDS is NaN in every floating-point format.
POISON = 0xFF


@dataclass(frozen=True)
class _Access:
    """An access of active lanes: `at` in bytes from the batch's first LDS byte, `owner` the wave + 1; both flat."""

    instruction: Instruction
    writes: bool
    at: Array
    owner: Array
    width: int
    aligned: bool


@dataclass(frozen=True, kw_only=True)
class Race:
    """Two waves at one byte: `first` reads or writes it, `second` writes it. `count` in lanes."""

    first: Instruction
    first_wave: int
    writes: bool
    second: Instruction
    second_wave: int
    byte: int
    count: int


class Lds:
    """The LDS of all workgroups of a batch, consecutively. `granule`: bytes per mark of the checks.

    With nonzero `banks`, `bank_use` accumulates the busy cycles of the banks.
    """

    def __init__(
        self, size: int, workgroups: int, waves_per_group: int, *, granule: int, check: bool, banks: int = 0
    ) -> None:
        self.size = size
        self._stride = round_up(max(size, 1), _ALL_BANKS_BYTES)
        self._banks = banks
        self.bank_use = BankUse()
        self.store = ByteStore(self._stride * workgroups, POISON)
        self._first: Array = (np.arange(workgroups * waves_per_group) // waves_per_group * self._stride).astype(I64)
        self._granule = granule
        marks = self._stride * workgroups // granule
        self._check = check
        self._log: list[_Access] | None = [] if check and waves_per_group > 1 else None
        self._written = np.zeros(marks if check else 0, bool)
        self._writer = np.zeros(marks if self._log is not None else 0, U16)

    def place(self, cohort: Cohort, instruction: Instruction, at: Array, width: int, mask: Array | None) -> Transfer:
        """The bounds-checked access as a Transfer without effect: `at` and `mask` for read and write below.

        `at` are byte offsets in the workgroup's LDS, (waves, 64), or (waves, 128) for two accesses per lane; `mask`
        None means all lanes.
        """
        if mask is not None:
            at = np.where(mask, at, 0)
        # As unsigned, a negative offset exceeds every size.
        if int(at.view(U64).max(initial=0)) + width > self.size:
            inside = (at >= 0) & (at + width <= self.size)
            bad = ~inside if mask is None else mask & ~inside
            if bad.any():
                cohort.batch.report(
                    LDS_OUT_OF_BOUNDS, cohort, instruction, bad,
                    lambda wave, lane: f"{width} bytes at {int(at[wave, lane])}, the workgroup has {self.size}",
                )  # fmt: skip
            mask = inside if mask is None else mask & inside
            at = np.where(mask, at, 0)
        placed = at + self._first[cohort.wave][:, None]
        aligned = is_aligned(placed, width)
        return Transfer(instruction=instruction, mask=mask, at=placed, width=width, aligned=aligned, is_lds=True)

    def read(self, cohort: Cohort, access: Transfer) -> Array:
        """The 32-bit words of a checked access, (words, waves, 64)."""
        assert access.at is not None
        self._measure(access, is_read=True)
        if self._check:
            self._check_written(cohort, access)
            self.log(cohort, access)
        return self.store.load(access.at, access.width, access.aligned)

    def write(self, cohort: Cohort, access: Transfer, words: Sequence[Array]) -> None:
        """Writes 32-bit words, each (waves, 64)."""
        assert access.at is not None
        self._measure(access, is_read=False)
        at = access.at
        if access.mask is not None:
            at, words = at[access.mask], [word[access.mask] for word in words]
        if at.size == 0:
            return
        access.writes_lds = True
        self.store.store(at, words, access.width, access.aligned)
        if self._check:
            self._set(self._written, at, access, True)
            self.log(cohort, access)

    def _measure(self, access: Transfer, *, is_read: bool) -> None:
        if self._banks and access.at is not None:
            mask = None if access.mask is None else access.mask.reshape(-1, 64)
            self.bank_use += bank_use(access.at.reshape(-1, 64), access.width, mask, self._banks, is_read=is_read)

    # ---- checks ---------------------------------------------------------------------------------------------

    def log(self, cohort: Cohort, access: Transfer) -> None:
        """Records an access for the race check of this interval between barriers."""
        if self._log is not None and access.at is not None:
            at, owner = access.at, np.broadcast_to(cohort.owner, access.at.shape)
            at, owner = (at.ravel(), owner.ravel()) if access.mask is None else (at[access.mask], owner[access.mask])
            self._log.append(_Access(access.instruction, access.writes_lds, at, owner, access.width, access.aligned))

    def end_interval(self) -> Iterator[Race]:
        """Compares the accesses since the last barrier, and clears them."""
        if not self._log:
            return
        writes = [access for access in self._log if access.writes and access.at.size]
        reads = [access for access in self._log if not access.writes and access.at.size] if writes else []
        for access in writes:
            self._set(self._writer, access.at, access, access.owner)
        for access in (*writes, *reads):
            found = self._get(self._writer, access.at, access)
            bad = ((found != access.owner[:, None]) & (found != 0)).any(axis=1)
            if bad.any():
                yield self._race(access, int(np.flatnonzero(bad)[0]), int(bad.sum()), writes)
        if writes:
            self._writer.fill(0)
        self._log.clear()

    def _race(self, access: _Access, at: int, count: int, writes: list[_Access]) -> Race:
        """Both accesses of a race at position `at` of an access."""
        place, mine = int(access.at[at]), int(access.owner[at])
        other, theirs = access, mine
        for write in writes:
            overlap = (write.at < place + access.width) & (place < write.at + write.width) & (write.owner != mine)
            if overlap.any():
                other, theirs = write, int(write.owner[np.flatnonzero(overlap)[0]])
                break
        return Race(
            first=access.instruction, first_wave=mine - 1, writes=access.writes,
            second=other.instruction, second_wave=theirs - 1, byte=place % self._stride, count=count,
        )  # fmt: skip

    def _check_written(self, cohort: Cohort, access: Transfer) -> None:
        assert access.at is not None
        marks = self._get(self._written, access.at, access)
        if marks.all():
            return
        written: Array = np.asarray(marks.all(axis=-1))
        bad: Array = ~written if access.mask is None else access.mask & ~written
        if bad.any():
            at = access.at
            cohort.batch.report(
                LDS_UNINITIALIZED, cohort, access.instruction, bad,
                lambda wave, lane: f"reads LDS at byte {int(at[wave, lane]) % self._stride}, which is unwritten",
            )  # fmt: skip

    def _rows(self, marks: Array, at: Array, access: Transfer | _Access) -> tuple[Array, Array]:
        """The marks as rows, one row for an aligned access, and the row of each; else single marks, (..., marks)."""
        width, granules = access.width, access.width // self._granule
        if granules in _SHIFTS and access.aligned:
            return marks.reshape(-1, granules), at >> (_SHIFTS[granules] + _SHIFTS[self._granule])
        first = at >> _SHIFTS[self._granule]
        index = first[..., None] + np.arange(max(1, granules) + 1)
        return marks, np.minimum(index, (at[..., None] + (width - 1)) >> _SHIFTS[self._granule])

    def _get(self, marks: Array, at: Array, access: Transfer | _Access) -> Array:
        rows, index = self._rows(marks, at, access)
        return rows.take(index, axis=0, mode="clip")

    def _set(self, marks: Array, at: Array, access: Transfer | _Access, value: Array | bool) -> None:
        rows, index = self._rows(marks, at, access)
        rows[index] = value if isinstance(value, bool) else value[:, None]
