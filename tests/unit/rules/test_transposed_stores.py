"""Loops that store a product's transpose, which leaves by TMA where the loop does nothing else."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import CALL, TMA_IF
from tile2cu.core.program import Copy

KERNEL = """
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, {columns}), "float32")
B_shared = T.alloc_shared((64, {columns}), "float16")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.copy(Z[k * 64, 64], B_shared)
    T.gemm(A_shared, B_shared, C_local)
for i, j in T.Parallel({rows}, {columns}):
    {store}
"""


def leaves_by_tma(store: str, *, rows: int = 64, columns: int = 64) -> bool:
    context = resolved(KERNEL.format(store=store, rows=rows, columns=columns), target="cuda:sm_90a")
    copies = [op for op in context.launch.body if isinstance(op, Copy) and op.transposed]
    assert [context.facts[op, CALL] for op in copies] in ([], ["tma_store"])
    return bool(copies)


@pytest.mark.parametrize(
    "store",
    [
        "Z[bx * 64 + j, i] = C_local[i, j]",
        "Z[j, 64 + i] = C_local[i, j]",
        'Z[j, i] = T.cast(C_local[i, j], "float16")',
        "Y[bx * 64 + j, 64 + i] = C_local[i, j]",
    ],
)
def test_a_transpose_is_a_copy(store: str) -> None:
    assert leaves_by_tma(store)


@pytest.mark.parametrize(
    "store",
    [
        "Z[i, j] = C_local[i, j]",
        "Z[j, i] = C_local[i, j] * 2.0",
        "Z[j, i] += C_local[i, j]",
        "Z[j, 2 * i] = C_local[i, j]",
        "Z[j + i, i] = C_local[i, j]",
        "Z[j, i] = C_local[j, i]",
        "X[j, i] = C_local[i, j]",
    ],
)
def test_other_stores_are_not(store: str) -> None:
    assert not leaves_by_tma(store)


def test_rows_that_only_a_run_tells_leave_either_way() -> None:
    """Nothing else that TMA moves has rows of n elements, so that the launcher asks nothing of n."""
    context = resolved(KERNEL.format(store="Y[j, i] = C_local[i, j]", rows=64, columns=64), target="cuda:sm_90a")
    (copy,) = (op for op in context.launch.body if isinstance(op, Copy))
    assert str(context.facts[copy, TMA_IF]) == "n % 8 == 0"
    assert context.facts.get(copy.dst.buffer, TMA_IF) is None


def test_parts_of_tiles_and_columns_that_do_not_come_in_sixteens_are_not() -> None:
    assert not leaves_by_tma("Z[j, i] = C_local[i, j]", rows=32)
    assert not leaves_by_tma("Z[j, i] = C_local[i, j]", columns=24)
