"""Shared tiles through which a kernel stores its result by hand: TMA needs none of the user's."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import CALL
from tile2cu.core.program import Copy, walk_stmts

KERNEL = """
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
C_shared = T.alloc_shared((64, 64), "{dtype}")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.gemm(A_shared, A_shared, C_local)
T.copy(C_local, C_shared)
{store}
"""
WHOLE = "T.copy(C_shared, Z[bx * 64, 64])"
BOUNDED = "for i, j in T.Parallel(64, 64):\n    if bx * 64 + i < m:\n        Z[bx * 64 + i, j] = C_shared[i, j]"


def is_left_out(store: str, *, dtype: str = "float16", target: str = "cuda:sm_90a") -> bool:
    context = resolved(KERNEL.format(store=store, dtype=dtype), target=target)
    left_out = all(tile.name != "C_shared" for tile in context.launch.tiles)
    stores = [op for op in walk_stmts(context.launch.body) if isinstance(op, Copy) and op.src.buffer.name == "C_local"]
    assert [context.facts[op, CALL] for op in stores if left_out] == ["tma_store"] * left_out
    return left_out


@pytest.mark.parametrize("store", [WHOLE, BOUNDED])
def test_a_tile_that_only_stages_a_result_is_left_out(store: str) -> None:
    assert is_left_out(store)


@pytest.mark.parametrize(
    "case",
    [
        {"store": WHOLE, "target": "cuda:sm_80"},
        {"store": "T.copy(C_shared, Y[bx * 64, 0])"},
        {"store": "T.copy(C_shared, X[bx * 64, 0])", "dtype": "float32"},
        {"store": "T.copy(C_shared, Z[bx * 64, 0])", "dtype": "bfloat16"},
        {"store": f"for i, j in T.Parallel(64, 64):\n    C_local[i, j] = 1.0\n{WHOLE}"},
        {"store": f"{WHOLE}\nT.copy(C_shared, Z[bx * 64, 128])"},
        {"store": f"for i, j in T.Parallel(64, 64):\n    C_shared[i, j] += 1.0\n{WHOLE}"},
        {"store": "for i, j in T.Parallel(64, 64):\n    Z[bx * 64 + i, j] = C_shared[j, i] * 2.0"},
        {"store": "T.copy(C_shared[0:32, 0:64], Z[bx * 64, 0])"},
    ],
)
def test_others_stay(case: dict[str, str]) -> None:
    assert not is_left_out(**case)  # type: ignore[arg-type]
