"""The banks of shared memory: conflict degrees of a warp's access."""

from collections.abc import Sequence

BANKS, BANK_BYTES = 32, 4  # CUDA C++ Programming Guide, 'Shared Memory': 32 banks of 32 bits
_PHASE_BYTES = BANKS * BANK_BYTES


def bank_ways(addresses: Sequence[int], width: int) -> int:
    """The number of different words of one bank that an access needs at worst; 1 is free of conflicts.

    `addresses` are the starts of each lane's `width` bytes. Lanes are served in groups that access up to 128 bytes;
    lanes that access the same word share it.
    """
    lanes = min(len(addresses), max(1, _PHASE_BYTES // max(width, BANK_BYTES)))
    worst = 1
    for first in range(0, len(addresses), lanes):
        words: dict[int, set[int]] = {}
        for address in addresses[first : first + lanes]:
            for word in range(address // BANK_BYTES, (address + width - 1) // BANK_BYTES + 1):
                words.setdefault(word % BANKS, set()).add(word)
        worst = max(worst, *(len(different) for different in words.values()))
    return worst
