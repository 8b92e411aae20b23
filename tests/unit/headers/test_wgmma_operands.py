"""Descriptors and parts of wgmma's operands lead to the elements that tiles hold there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.needs("g++")

SPANS = {1: 128, 2: 64, 3: 32}  # bytes, by the swizzle mode in bits 62-63 of a descriptor
NAMES = [f"{size}, {span} bytes" for size, span in [
    ("128x128 of K", 128), ("64x64 of K", 64), ("64x32 of K", 32), ("64x256 of N", 128), ("32x128 of N", 64),
    ("32x64 of N", 32), ("64x128 of 128x192 of K", 128), ("64x32 of 64x64 of K", 128), ("32x128 of 64x256 of N", 128),
    ("48x64 of 64x96 of N", 64),
]]  # fmt: skip


def wgmma_address(descriptor: int, mn: int, k: int, mn_contiguous: bool) -> int:
    """Where wgmma reads element (mn, k), k < 16, of an operand of 16-bit elements, in bytes.

    Source: CUTLASS, include/cute/arch/mma_sm90_desc.hpp, "GMMA Canonical Layouts" (T = 8 elements, W = a span):
    MN-major Swizzle<..> o ((T,8,m),(8,k)):((1,T,LBO),(8T,SBO)), shorter spans with 4 or 2 in the place of 8 along mn;
    K-major Swizzle<..> o ((8,m),(T,2k)):((8T,SBO),(1,T)). The swizzle is PTX's: address bits 4-6 are xor-ed with bits
    7-9, as far as the span reaches.
    """
    start, leading, stride = ((descriptor >> shift & 0x3FFF) * 16 for shift in (0, 16, 32))
    span = SPANS[descriptor >> 62]
    if mn_contiguous:
        in_span = span // 2
        address = start + mn // in_span * leading + mn % in_span * 2 + k // 8 * stride + k % 8 * span
    else:
        address = start + mn // 8 * stride + mn % 8 * span + k * 2
    return address ^ (address >> 7 & (span // 16 - 1)) << 4


@pytest.mark.parametrize("name", NAMES)
def test_wgmma_reads_what_the_tile_holds(printed: Callable[[str], Any], name: str) -> None:
    operand = printed("wgmma_operands")[name]
    mn_contiguous = bool(operand["mn_contiguous"])
    assert operand["parts"]
    for part, offset in operand["parts"].items():
        first_mn, first_k = map(int, part.split())
        descriptor = operand["descriptor"] + offset * 2 // 16
        assert offset * 2 % 16 == 0
        for mn in range(64):
            for k in range(16):
                row, col = first_mn + mn, first_k + k
                if mn_contiguous:
                    row, col = col, row
                assert wgmma_address(descriptor, mn, k, mn_contiguous) == operand["elements"][row][col] * 2
