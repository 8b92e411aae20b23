"""Bank conflicts of LDS: the hardware serves a wave in phases, groups of lanes at a time.

Source: ROCm, Composable Kernel, "Understanding AMD GPU LDS and Bank Conflicts": ds_read_b128 has groups of its own,
other accesses as many consecutive lanes as access each bank once. Of ds_read_b128 in 64 banks: triton-lang/triton,
pull request 11365.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import LANES, WAVE_SIZE, Array

BANKS = {"gfx90a": 32, "gfx942": 32, "gfx950": 64}
BANK_BYTES = 4

# The first lanes of the groups of four lanes in each phase of ds_read_b128.
_READ_16 = {
    32: ((0, 20), (32, 52), (4, 16), (36, 48), (8, 28), (40, 60), (12, 24), (44, 56)),
    64: ((0, 12, 20, 24), (32, 44, 52, 56), (4, 8, 16, 28), (36, 40, 48, 60)),
}  # fmt: skip


@dataclass(frozen=True)
class BankUse:
    """Busy cycles of the banks, and the minimum without conflicts."""

    cycles: int = 0
    ideal: int = 0

    def __add__(self, other: BankUse) -> BankUse:
        return BankUse(self.cycles + other.cycles, self.ideal + other.ideal)


def phase_of_lane(width: int, banks: int, *, is_read: bool) -> Array:
    """The phase of each lane, (64,); `width` in bytes per lane."""
    if width == 16 and is_read:
        phase: Array = np.zeros(WAVE_SIZE, np.int64)
        for number, quads in enumerate(_READ_16[banks]):
            for first in quads:
                phase[first : first + 4] = number
        return phase
    lanes_at_once = min(WAVE_SIZE, banks * BANK_BYTES // max(4, 1 << (width - 1).bit_length()))
    return LANES // lanes_at_once


def bank_use(at: Array, width: int, mask: Array | None, banks: int, *, is_read: bool) -> BankUse:
    """The use of an access at byte offsets, (waves, 64), of active lanes `mask`. Lanes that access the same word
    share it.
    """
    active = np.ones(at.shape, np.bool_) if mask is None else mask
    # Cached by the lanes' offsets modulo the banks' period: loops repeat them.
    first = np.where(active, at, np.iinfo(at.dtype).max).min(axis=1, keepdims=True)
    lanes = np.where(active, at - first // (banks * BANK_BYTES) * (banks * BANK_BYTES), -1).astype(np.int32)
    return sum((_wave_use(wave.tobytes(), width, banks, is_read) for wave in lanes), BankUse())


@functools.lru_cache(maxsize=4096)
def _wave_use(lanes: bytes, width: int, banks: int, is_read: bool) -> BankUse:
    """The use of one wave; `lanes` are its byte offsets as int32, -1 for inactive ones."""
    at = np.frombuffer(lanes, np.int32).astype(np.int64)
    phase = phase_of_lane(width, banks, is_read=is_read)
    words = (at // BANK_BYTES)[:, None] + np.arange(-(-width // BANK_BYTES))
    keys = (phase[:, None] << 32) + words
    chosen = np.unique(keys[at >= 0])
    load = np.bincount((chosen >> 32) * banks + chosen % banks, minlength=(int(phase.max()) + 1) * banks)
    cycles = load.reshape(-1, banks).max(axis=1)
    needed = -(-load.reshape(-1, banks).sum(axis=1) // banks)
    return BankUse(int(cycles.sum()), int(needed.sum()))
