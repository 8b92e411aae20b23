"""Where shared tiles put their chunks: each somewhere else, without bank conflicts, as CuTe's swizzles say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.needs("g++")

BANK_BYTES = 128  # 32 banks of 4 bytes; 8 lanes with 16 bytes each make one access
TILES = [
    "128 half 32x64",
    "128 half 32x192",
    "128 float 16x64",
    "128 byte 24x128",
    "64 half 32x32",
    "64 half 32x96",
    "32 half 32x16",
    "32 half 16x48",
    "padded half 32x32",
    "padded half 32x128",
    "none half 8x24",
]
SWIZZLED = [name for name in TILES if name[0].isdigit()]
# CuTe, include/cute/atom/mma_traits_sm90_gmma.hpp: Layout_K_SW128_Atom is Swizzle<3,4,3>, SW64 <2,4,3>, SW32 <1,4,3>:
# address bits 4.. are XORed with as many bits from 7.. on.
CUTE_BITS = {128: 3, 64: 2, 32: 1}


def cute_swizzle(address: int, bits: int) -> int:
    return address ^ (address >> 3 & ((1 << bits) - 1) << 4)


@pytest.mark.parametrize("name", TILES)
def test_chunks_do_not_overlap(printed: Callable[[str], Any], name: str) -> None:
    tile = printed("shared_tiles")[name]
    offsets = sorted(offset for row in tile["offsets"] for offset in row)
    assert all(offset % 16 == 0 for offset in offsets)
    assert all(b - a >= 16 for a, b in zip(offsets, offsets[1:], strict=False))
    assert offsets[-1] + 16 <= tile["bytes"]
    if not name.startswith("padded"):
        assert tile["bytes"] == 16 * len(offsets)


@pytest.mark.parametrize("name", [name for name in TILES if not name.startswith("none")])
def test_eight_rows_of_a_chunk_hit_all_banks(printed: Callable[[str], Any], name: str) -> None:
    offsets = printed("shared_tiles")[name]["offsets"]
    for first in range(0, len(offsets), 8):
        for column in zip(*offsets[first : first + 8], strict=True):
            assert len({offset % BANK_BYTES for offset in column}) == 8


@pytest.mark.parametrize("name", SWIZZLED)
def test_eight_neighbouring_chunks_hit_all_banks(printed: Callable[[str], Any], name: str) -> None:
    """The order in which a copy writes: row after row of a panel."""
    offsets = printed("shared_tiles")[name]["offsets"]
    panel = int(name.split()[0]) // 16
    for first in range(0, len(offsets[0]), panel):
        chunks = [offset for row in offsets for offset in row[first : first + panel]]
        for start in range(0, len(chunks), 8):
            assert len({offset % BANK_BYTES for offset in chunks[start : start + 8]}) == 8


@pytest.mark.parametrize("name", SWIZZLED)
def test_swizzles_are_cutes_panel_after_panel(printed: Callable[[str], Any], name: str) -> None:
    tile = printed("shared_tiles")[name]
    span = int(name.split()[0])
    assert tile["alignment"] == 8 * span
    for row, offsets in enumerate(tile["offsets"]):
        for chunk, offset in enumerate(offsets):
            panel, byte = divmod(16 * chunk, span)
            assert offset == panel * len(tile["offsets"]) * span + cute_swizzle(row * span + byte, CUTE_BITS[span])
