"""Loops that store a product's rows up to a bound: blocks whose rows all lie below it store them by TMA."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import CALL
from tile2cu.core.program import Copy, If, Parallel

KERNEL = """
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.gemm(A_shared, A_shared, C_local)
start, length = {start}, {length}
for i, j in T.Parallel(64, 64):
    if {condition}:
        {store}
"""
STORE = "Z[start + i, j] = C_local[i, j]"


def branch(
    condition: str = "bx * 64 + i < length", store: str = STORE, start: str = "bx * 64", length: str = "m - 5"
) -> If | None:
    """The branch of the copy and the loop; None where the loop is left as it is."""
    text = KERNEL.format(condition=condition, store=store, start=start, length=length)
    context = resolved(text, target="cuda:sm_90a")
    last = context.launch.body[-1]
    if isinstance(last, Parallel):
        return None
    assert isinstance(last, If) and isinstance(last.then[0], Copy) and isinstance(last.orelse[0], Parallel)
    assert context.facts[last.then[0], CALL] == "tma_store"
    return last


@pytest.mark.parametrize(
    "condition",
    ["bx * 64 + i < length", "length > i", "i <= length and j < m", "bx * 64 + i < length and bx < 7"],
)
def test_whole_tiles_are_copied(condition: str) -> None:
    assert branch(condition) is not None


@pytest.mark.parametrize(
    "store",
    [
        "Z[i + start, 64 + j] = C_local[i, j]",
        'Z[start + i, j] = T.cast(C_local[i, j], "float16")',
    ],
)
def test_a_store_of_each_element_as_it_is_copies(store: str) -> None:
    assert branch(store=store) is not None


@pytest.mark.parametrize(
    "store",
    [
        "Z[start + i, j] = C_local[i, j] * 2.0",
        "Z[start + i, j] += C_local[i, j]",
        "Z[start + j, i] = C_local[i, j]",
        "Z[start + 2 * i, j] = C_local[i, j]",
        "Z[start + i, j + i] = C_local[i, j]",
        "X[start + i, j] = C_local[i, j]",
    ],
)
def test_other_stores_do_not(store: str) -> None:
    assert branch(store=store) is None


@pytest.mark.parametrize("condition", ["i % 2 == 0", "C_local[i, j] > 0.0", "i * j < length"])
def test_nor_where_it_is_not_known_when_all_rows_are_stored(condition: str) -> None:
    assert branch(condition) is None
