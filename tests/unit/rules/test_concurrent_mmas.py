"""Products of one turn beside one another: only with registers for all that is alive then."""

from __future__ import annotations

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import NO_MMA_IN_FLIGHT, SCHEDULE, WARPS
from tile2cu.core.program import Gemm
from tile2cu.core.schedule import InOrder

# D and E live from turn to turn; the copy of S is read by a product that may be in flight while S and C are used.
BODY = """
A_shared = T.alloc_shared((128, {columns}), "float16")
B_shared = T.alloc_shared((128, {columns}), "float16")
W_shared = T.alloc_shared(({rows}, {columns}), "float16")
S = T.alloc_fragment(({rows}, 128), "float32")
C = T.alloc_fragment(({rows}, 128), "float32")
S_cast = T.alloc_fragment(({rows}, 128), "float16")
C_cast = T.alloc_fragment(({rows}, 128), "float16")
D = T.alloc_fragment(({rows}, {columns}), "float32")
E = T.alloc_fragment(({rows}, {columns}), "float32")
T.copy(Z[0, 0], W_shared)
T.clear(D)
T.clear(E)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 128, 0], A_shared)
    T.copy(Z[0, k * 128], B_shared)
    T.gemm(W_shared, A_shared, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
    T.gemm(W_shared, B_shared, C, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
    T.copy(S, S_cast)
    T.gemm(S_cast, B_shared, D, policy=T.GemmWarpPolicy.FullRow)
    for i, j in T.Parallel({rows}, 128):
        C_cast[i, j] = S[i, j] * C[i, j]
    T.gemm(C_cast, A_shared, E, policy=T.GemmWarpPolicy.FullRow)
for i, j in T.Parallel({rows}, {columns}):
    D[i, j] += E[i, j]
T.copy(D, X[0, 0])
"""


# Alive in front of the last loop: S and C with 64 registers, S_cast with 32 if its product is in flight, D and E with
# `columns` together, or so many for twice the threads. 24 are left for all else.
@pytest.mark.parametrize(
    ("rows", "columns", "in_flight"),
    [
        (64, 64, (True, True, True)),  # 224 of the 255 that one warpgroup's threads can have
        (128, 32, (True, True, True)),  # 192 of the 240 that hand over
        (128, 64, (True, True, False)),  # 224 of 240, 192 without S_cast
        (64, 96, (True, True, False)),  # 256 of 255, 224
        (64, 128, (False, False, False)),  # 288 of 255, 256
    ],
)
def test_products_stay_in_flight_where_registers_suffice(rows: int, columns: int, in_flight: tuple[bool, ...]) -> None:
    context = resolved(BODY.format(rows=rows, columns=columns), threads=2 * rows, target="cuda:sm_90a")
    products = [op for op in context.statements if isinstance(op, Gemm)]
    assert len(products) == 4 and all(context.facts.get(op, WARPS) is not None for op in products)
    found = next((each for op in context.statements if (each := context.facts.get(op, SCHEDULE)) is not None), None)
    awaited = found.in_flight if isinstance(found, InOrder) else ()
    flights = tuple(any(op is mma for mma in awaited) for op in products)
    assert flights == (*in_flight, False), "the last one is awaited where it stands"
    told = [context.facts.get(op, NO_MMA_IN_FLIGHT) for op in context.statements]
    assert any(told) == (not any(in_flight))
