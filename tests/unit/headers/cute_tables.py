"""Fragments of mma.sync and wgmma as CuTe tabulates them: the independent oracle of the layouts here.

Source: CUTLASS, include/cute/atom/mma_traits_sm80.hpp and mma_traits_sm90_gmma.hpp. A table is ((thread shape), (thread
stride)), ((value shape), (value stride)): it takes thread and value to an index in a column-major tile, (M, K) for A,
(N, K) for B, (M, N) for C.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

Mode = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Table:
    rows: int
    thread: Mode
    value: Mode


C_16X8 = Table(16, ((4, 8), (32, 1)), ((2, 2), (16, 8)))  # SM80_16x8_Row
HALF_A = Table(16, ((4, 8), (32, 1)), ((2, 2, 2), (16, 8, 128)))  # MMA_Traits<SM80_16x8x16_F16F16F16F16_TN>
HALF_B = Table(8, ((4, 8), (16, 1)), ((2, 2), (8, 64)))
INT8_A = Table(16, ((4, 8), (64, 1)), ((4, 2, 2), (16, 8, 256)))  # MMA_Traits<SM80_16x8x32_S32S8S8S32_TN>
INT8_B = Table(8, ((4, 8), (32, 1)), ((4, 2), (8, 128)))
TF32_A = Table(16, ((4, 8), (16, 1)), ((2, 2), (8, 64)))  # MMA_Traits<SM80_16x8x8_F32TF32TF32F32_TN>
TF32_B = Table(8, ((4, 8), (8, 1)), ((2,), (32,)))

DOUBLE_A = Table(16, ((4, 8), (16, 1)), ((2,), (8,)))  # two MMA_Traits<SM80_8x8x4_F64F64F64F64_TN>, 8 rows apart
DOUBLE_B = Table(8, ((4, 8), (8, 1)), ((1,), (0,)))


def wgmma_64xn(n: int) -> Table:
    """GMMA::CLayout_64xN; with n = 16 also GMMA::ALayout_64x16."""
    return Table(64, ((4, 8, 4), (128, 1, 16)), ((2, 2, n // 8), (64, 8, 512)))


def indices(mode: Mode) -> list[int]:
    """The offsets of one mode, its first sub-mode fastest."""
    shape, stride = mode
    places = itertools.product(*map(range, reversed(shape)))
    return [sum(c * s for c, s in zip(reversed(place), stride, strict=True)) for place in places]


def places(table: Table) -> list[list[list[int]]]:
    """[row, column] of each value of each thread."""
    values = indices(table.value)
    return [[[(t + v) % table.rows, (t + v) // table.rows] for v in values] for t in indices(table.thread)]
