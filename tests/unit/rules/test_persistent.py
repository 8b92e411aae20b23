"""Which kernels' blocks stay and take tile after tile."""

from __future__ import annotations

import pytest

from tests.unit.rules.kernels import settled

BODY = """
Q_shared = T.alloc_shared((128, 128), "float16")
K_shared = T.alloc_shared((128, 128), "float16")
V_shared = T.alloc_shared((128, 128), "float16")
S = T.alloc_fragment((128, 128), "float32")
P = T.alloc_fragment((128, 128), "float16")
O = T.alloc_fragment((128, 128), "float32")
{above}
T.copy(Z[bx * 128, 0], Q_shared)
T.clear(O)
for k in T.Pipelined({turns}, num_stages=1):
    T.copy(Z[k * 128, 0], K_shared)
    T.copy(Z[k * 128, 128], V_shared)
    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
    T.copy(S, P)
    T.gemm(P, V_shared, O)
{below}
T.copy(O, X[bx * 128, 0])
"""


def order(turns: str) -> str:
    """In which order blocks start; empty for the grid's own."""
    context = settled(BODY.format(turns=turns, above="", below=""), threads=256, target="cuda:sm_90a")
    found = context.facts.get(context.launch, "order")
    return str(found) if found is not None else ""


def dealt(turns: str = "8", above: str = "", below: str = "", target: str = "cuda:sm_90a") -> str:
    """How tiles are dealt to blocks that stay; empty where each block has one."""
    context = settled(BODY.format(turns=turns, above=above, below=below), threads=256, target=target)
    found = context.facts.get(context.launch, "persistent")
    return str(found) if found is not None else ""


def test_tiles_of_equal_work_are_dealt_in_turns() -> None:
    assert dealt() == "in turns"
    assert dealt("m // 128") == "in turns"


def test_tiles_of_unequal_work_are_drawn_from_a_queue() -> None:
    assert dealt("bx + 1") == "from a queue"
    assert dealt('T.cast(A[bx, 0], "int32")') == "from a queue"
    assert dealt("8 - bx") == "from a queue"


@pytest.mark.parametrize(
    "turns",
    [
        "bx + 1",
        "T.if_then_else(bx * 128 < m, bx + 1, 0)",
        "T.if_then_else(bx * 128 >= m, 0, bx + 1)",
        'T.min(bx + 1 + T.cast(A[m, 0], "int32"), T.cast(A[n, 0], "int32"))',
    ],
)
def test_tiles_with_the_most_turns_come_first(turns: str) -> None:
    assert order(turns) == "longest first, in groups of 4 or more"


@pytest.mark.parametrize(
    "turns", ["8", "8 - bx", 'T.cast(A[bx, 0], "int32")', "T.if_then_else(bx * 128 < m, bx + 1, 8)"]
)
def test_others_come_as_the_grid_does(turns: str) -> None:
    assert order(turns) == ""


REFUSED = {
    "a chip without wgmma": {"target": "cuda:sm_80"},
    "a first tile that is read again": {"below": "T.copy(Q_shared, X[0, 0])"},
    "shared memory that is no ring": {
        "above": 'more = T.alloc_shared((128,), "float32")\nT.copy(A[0:128, 0], more)',
        "below": "for i, j in T.Parallel(128, 128):\n    O[i, j] += more[j]",
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_each_block_has_one_tile(case: str) -> None:
    assert dealt(**REFUSED[case]) == ""
