"""Where results are staged on their way out by TMA: in memory of their own, or where a tile was that nobody needs."""

from __future__ import annotations

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import STORE_STAGING

BODY = """
F_shared = T.alloc_shared(({rows}, 256), "float16")
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 256), "float16")
C_local = T.alloc_fragment((64, 256), "float32")
T.copy(Z[0, 0], F_shared)
T.clear(C_local)
for k in T.Pipelined(4, num_stages={stages}):
    T.copy(Z[0, k * 64], A_shared)
    T.copy(Z[k * 64, 0], B_shared)
    T.gemm(A_shared, B_shared, C_local)
for i, j in T.Parallel(64, 256):
    C_local[i, j] += F_shared[i, j]
{above}
T.copy(C_local, {to}[0, 0])
{below}
"""


def staged(*, rows: int = 128, stages: int = 4, above: str = "", to: str = "Z", below: str = "") -> dict[str, str]:
    """The staging tiles, and whose memory each has."""
    body = BODY.format(rows=rows, stages=stages, above=above, to=to, below=below)
    context = resolved(body, target="cuda:sm_90a")
    tiles = context.facts.get(context.launch, STORE_STAGING)
    return {each.name: each.where.name if each.where is not None else "its own" for each in tiles}


def test_a_staging_tile_has_memory_of_its_own_where_there_is_room() -> None:
    assert staged(stages=2) == {"C_local_staging": "its own"}


def test_it_has_the_memory_of_a_tile_that_nobody_needs_any_more() -> None:
    assert staged() == {"C_local_staging": "F_shared"}


REFUSED = {
    "the tile is read again": {"below": "for i, j in T.Parallel(64, 256):\n    X[i, j] = F_shared[i, j]"},
    "the tile is too small": {"rows": 8, "stages": 5},
    "TMA may still read the tile": {"above": "T.tma_copy(F_shared, Z[256, 0])", "below": "T.tma_store_wait()"},
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_staged_in_the_slots_of_a_ring_instead(case: str) -> None:
    assert staged(**REFUSED[case]) == {"C_local_staging": "A_shared"}  # type: ignore[arg-type]


# A persistent block's slots are never free: what is left beside them may hold some of the columns.
OVER_TILES = """
A_shared = T.alloc_shared(({rows}, 64), "float16")
B_shared = T.alloc_shared((64, 256), "float16")
C_local = T.alloc_fragment(({rows}, 256), "float32")
rest = T.alloc_shared(({rest}, 256), "float16")
for i, j in T.Parallel({rest}, 256):
    rest[i, j] = 0
for tile in T.serial(4):
    T.clear(C_local)
    for k in T.Pipelined(4, num_stages={stages}):
        T.copy(Z[tile * {rows}, k * 64], A_shared)
        T.copy(Z[k * 64, 0], B_shared)
        T.gemm(A_shared, B_shared, C_local)
    T.copy(C_local, Y[tile * {rows}, 0])
"""
ROOMS = {  # rows, stages, rest: columns
    "three of four panels": (64, 5, 2, [192]),
    "two panels": (64, 5, 8, [128]),
    "just two": (64, 5, 16, [128]),
    "one, in which a warp has one box": (64, 5, 24, []),
    "one, in which it has two": (128, 4, 16, [64]),
    "none": (128, 4, 48, []),
}


@pytest.mark.parametrize(("rows", "stages", "rest", "columns"), ROOMS.values(), ids=ROOMS)
def test_as_many_columns_as_fit_are_staged_at_a_time(rows: int, stages: int, rest: int, columns: list[int]) -> None:
    context = resolved(OVER_TILES.format(rows=rows, stages=stages, rest=rest), target="cuda:sm_90a")
    tiles = context.facts.get(context.launch, STORE_STAGING)
    assert [each.layout.extents[-1] for each in tiles] == columns
