"""The banks of shared memory: conflict degrees of a warp's access."""

from collections.abc import Sequence

BANKS, BANK_BYTES = 32, 4  # CUDA C++ Programming Guide, 'Shared Memory': 32 banks of 32 bits
_PHASE_BYTES = BANKS * BANK_BYTES
# The first lanes of the groups of four that ds_read_b128 serves together. [ROCm, Composable Kernel, "Understanding AMD
# GPU LDS and Bank Conflicts"; of 64 banks: triton-lang/triton, pull request 11365]
_DS_READ_B128 = (
    ((0, 20), (32, 52), (4, 16), (36, 48), (8, 28), (40, 60), (12, 24), (44, 56)),
    ((0, 12, 20, 24), (32, 44, 52, 56), (4, 8, 16, 28), (36, 40, 48, 60)),
)


def bank_ways(addresses: Sequence[int], width: int) -> int:
    """The number of different words of one bank that an access needs at worst; 1 is free of conflicts.

    `addresses` are the starts of each lane's `width` bytes. Lanes are served in groups that access up to 128 bytes;
    lanes that access the same word share it.
    """
    lanes = min(len(addresses), max(1, _PHASE_BYTES // max(width, BANK_BYTES)))
    phases = (addresses[first : first + lanes] for first in range(0, len(addresses), lanes))
    return max((_ways(phase, width, BANKS) for phase in phases), default=1)


def lds_ways(addresses: Sequence[int], width: int, *, is_read: bool, banks: int = 32) -> int:
    """The same of a wave's access to the LDS of a CDNA GPU: 64 addresses, of gfx950 in 64 banks. [ROCm, Composable
    Kernel, "Understanding AMD GPU LDS and Bank Conflicts"]
    """
    phases = _lds_phases(len(addresses), width, is_read=is_read, banks=banks)
    return max(_ways([addresses[lane] for lane in phase], width, banks) for phase in phases)


def lds_phase(width: int, *, banks: int = 32) -> str:
    """The first lanes of a wave's read that the LDS serves together, with their number and the source, in words."""
    first = _lds_phases(64, width, is_read=True, banks=banks)[0]
    starts = [lane for lane in first if lane - 1 not in first]
    runs = (f"{lane}-{next(end for end in range(lane, 65) if end + 1 not in first)}" for lane in starts)
    source = "Triton, pull request 11365" if width == 16 and banks == 64 else "ROCm, documentation of CK Tile"
    return f"{len(first)} lanes ({', '.join(runs)}; ...) that the LDS serves together ({source})"


def _lds_phases(lanes: int, width: int, *, is_read: bool, banks: int) -> list[list[int]]:
    """The lanes of each phase of an access to the LDS."""
    if width == 16 and is_read:
        return [[first + lane for first in quads for lane in range(4)] for quads in _DS_READ_B128[banks // 64]]
    together = min(lanes, banks * BANK_BYTES // max(width, BANK_BYTES))
    return [[*range(first, first + together)] for first in range(0, lanes, together)]


def _ways(addresses: Sequence[int], width: int, banks: int) -> int:
    """The number of different words of one bank that lanes access together."""
    words: dict[int, set[int]] = {}
    for address in addresses:
        for word in range(address // BANK_BYTES, (address + width - 1) // BANK_BYTES + 1):
            words.setdefault(word % banks, set()).add(word)
    return max((len(different) for different in words.values()), default=1)
