"""Persistent kernels whose tiles of work have any number of iterations."""

from pathlib import Path

import numpy as np

import tile2cu
from tests.host.kernels import load_body

BODY = """
        Q_shared = T.alloc_shared((128, 128), "float16")
        K_shared = T.alloc_shared((128, 128), "float16")
        V_shared = T.alloc_shared((128, 128), "float16")
        S = T.alloc_fragment((128, 128), "float32")
        P = T.alloc_fragment((128, 128), "float16")
        O = T.alloc_fragment((128, 128), "float32")
        T.copy(Q[0, 0], Q_shared)
        T.fill(O, bx)
        for k in T.Pipelined(trips[bx], num_stages=2):
            T.copy(K[k * 128, 0], K_shared)
            T.copy(V[k * 128, 0], V_shared)
            T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
            T.copy(S, P)
            T.gemm(P, V_shared, O)
        T.copy(O, Out[bx * 128, 0])
"""
TRIPS = np.array([-3, -1, -5, 2, 0, 1, -1, 4, 3, 2], np.int32)


def test_pipelines_continue_after_tiles_with_a_trip_count_below_zero(tmp_path: Path) -> None:
    kernel = load_body(
        tmp_path,
        BODY,
        'Q: T.Tensor((128, 128), "float16"), K: T.Tensor((N, 128), "float16"), V: T.Tensor((N, 128), "float16"), '
        'trips: T.Tensor((10,), "int32"), Out: T.Tensor((1280, 128), "float32")',
        grid=str(len(TRIPS)),
        arguments="N",
        threads=256,
        target="cuda:sm_90a",
    )
    (emitted,) = tile2cu.emit(tmp_path / "small.py", target="cuda:sm_90a").values()
    assert "tl::DynamicTileScheduler" in emitted.source
    random = np.random.default_rng(3)
    q, k, v = (random.integers(-1, 2, (rows, 128)).astype(np.float16) for rows in (128, 512, 512))
    found = kernel(q, k, v, TRIPS).reshape(-1, 128, 128)
    for tile, trips in enumerate(TRIPS):
        rows = slice(0, 128 * max(trips, 0))
        weights = (q.astype(np.float32) @ k[rows].astype(np.float32).T).astype(np.float16)
        np.testing.assert_array_equal(found[tile], tile + weights.astype(np.float32) @ v[rows].astype(np.float32))
