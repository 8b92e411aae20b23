"""Which kernels' blocks stay and take tile after tile."""

from __future__ import annotations

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import PERSISTENT, TILE_ORDER

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


GUARDED = "for i, j in T.Parallel(128, 128):\n    if {condition}:\n        X[bx * 128 + i, j] = O[i, j]"


@pytest.mark.parametrize(
    ("conditions", "passed"),
    [
        (["bx * 128 + i < length"], True),
        (["i < length - bx * 128 and j < 99"], True),
        (["bx * 128 + i < length", "bx * 128 + i < length - 7"], True),
        (["bx * 128 + i < length", "i < 5"], False),
        (["bx * 128 - i < length"], True),
        (["i < T.cast(A[bx, 0], 'int32')"], False),
        (["bx * 128 + i < length or j < 5"], False),
    ],
)
def test_tiles_that_write_nothing_are_passed_over(conditions: list[str], passed: bool) -> None:
    guarded = "\n".join(GUARDED.format(condition=condition) for condition in conditions)
    above = 'length = T.cast(A[m, 0], "int32")'
    text = BODY.format(turns='T.cast(A[bx, 0], "int32")', above=above, below=guarded)
    context = resolved(text.replace("T.copy(O, X[bx * 128, 0])", ""), threads=256, target="cuda:sm_90a")
    found = str(context.facts[context.launch, PERSISTENT])
    assert found == "tiles from a queue" + ", without those that write nothing" * passed


def order(turns: str) -> str:
    """In which order blocks start; empty for the grid's own."""
    context = resolved(BODY.format(turns=turns, above="", below=""), threads=256, target="cuda:sm_90a")
    found = context.facts.get(context.launch, TILE_ORDER)
    return str(found) if found is not None else ""


def dealt(turns: str = "8", above: str = "", below: str = "", target: str = "cuda:sm_90a") -> str:
    """How tiles are dealt to blocks that stay; empty where each block has one."""
    context = resolved(BODY.format(turns=turns, above=above, below=below), threads=256, target=target)
    found = context.facts.get(context.launch, PERSISTENT)
    return str(found) if found is not None else ""


def test_tiles_of_equal_work_are_dealt_in_turns() -> None:
    assert dealt() == "statically assigned tiles"
    assert dealt("m // 128") == "statically assigned tiles"


def test_packets_behind_the_turns_take_none_of_their_registers() -> None:
    packets = "for i, j in T.Parallel(128, 64):\n    X[i, j] = A[i, j]"
    assert dealt(below=packets) == "statically assigned tiles"


def test_tiles_of_unequal_work_are_drawn_from_a_queue() -> None:
    assert dealt("bx + 1") == "tiles from a queue"
    assert dealt('T.cast(A[bx, 0], "int32")') == "tiles from a queue"
    assert dealt("8 - bx") == "tiles from a queue"


@pytest.mark.parametrize(("stored", "told"), [("", ", with their active iterations"), ("i < length - bx * 128", None)])
def test_turns_that_are_taken_are_handed_on(stored: str, told: str | None) -> None:
    """But not where tiles may be idle, too."""
    turns = BODY.replace("\n    ", "\n        ").replace("num_stages=1):", "num_stages=1):\n    if A[k, 0] != 0:")
    text = turns.format(
        turns="8", above='length = T.cast(A[m, 0], "int32")', below=GUARDED.format(condition=stored) if stored else ""
    )
    text = text.replace("T.copy(O, X[bx * 128, 0])", "") if stored else text
    context = resolved(text, threads=256, target="cuda:sm_90a")
    found = context.facts.get(context.launch, PERSISTENT)
    assert (str(found) if found is not None else None) == (told and f"tiles from a queue{told}")


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


def test_all_threads_may_wait_at_a_barrier() -> None:
    assert dealt(below="T.sync_threads(3, 256)") == "statically assigned tiles"
    assert dealt(below="T.sync_threads(3, 128)") == ""


def test_tiles_that_may_write_nothing_have_blocks_of_their_own_where_a_scalar_sizes_the_grid() -> None:
    above = 'length = T.cast(A[m, 0], "int32")'
    text = BODY.format(
        turns='T.cast(A[bx, 0], "int32")', above=above, below=GUARDED.format(condition="bx * 128 + i < length")
    )
    text = text.replace("T.copy(O, X[bx * 128, 0])", "")
    for grid, found in (
        ("T.ceildiv(m, 128)", "tiles from a queue, without those that write nothing"),
        ("blocks", "None"),
    ):
        context = resolved(text, threads=256, target="cuda:sm_90a", grid=grid)
        assert str(context.facts.get(context.launch, PERSISTENT)) == found


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


def test_blocks_that_have_nothing_of_their_own_are_not_persistent() -> None:
    body = BODY.format(turns="8", above="", below="")
    for text, found in ((body, "statically assigned tiles"), (body.replace("bx * 128", "0"), "None")):
        context = resolved(text, threads=256, target="cuda:sm_90a")
        assert str(context.facts.get(context.launch, PERSISTENT)) == found
