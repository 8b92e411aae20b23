"""Products of rows that a tensor gives: several at a turn's end, in flight while the next turn gathers."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(5)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_gate_and_up_of_gathered_tokens(target: str, tmp_path: Path) -> None:
    """Ragged K and N; rows past the last token are zero."""
    kernel = load_body(
        tmp_path,
        """
        X_shared = T.alloc_shared((64, 64), "float16")
        G_shared = T.alloc_shared((64, 64), "float16")
        U_shared = T.alloc_shared((64, 64), "float16")
        gate = T.alloc_fragment((64, 64), "float32")
        up = T.alloc_fragment((64, 64), "float32")
        T.clear(gate)
        T.clear(up)
        for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
            for i, j in T.Parallel(64, 64):
                X_shared[i, j] = T.if_then_else(token[i] < M, X[token[i], k * 64 + j], 0)
            T.copy(G[bx * 64, k * 64], G_shared)
            T.copy(U[bx * 64, k * 64], U_shared)
            T.gemm(X_shared, G_shared, gate, transpose_B=True)
            T.gemm(X_shared, U_shared, up, transpose_B=True)
        for i, j in T.Parallel(64, 64):
            gate[i, j] = T.max(gate[i, j], 0) * up[i, j]
        T.copy(gate, Y[0, bx * 64])
        """,
        """X: T.Tensor((M, K), "float16"), G: T.Tensor((N, K), "float16"), U: T.Tensor((N, K), "float16"),
           token: T.Tensor((64,), "int32"), Y: T.Tensor((64, N), "float32")""",
        grid="T.ceildiv(N, 64)",
        arguments="M, N, K",
        target=target,
    )
    x, g, u = (RNG.integers(-3, 4, shape).astype(np.float16) for shape in ((21, 328), (104, 328), (104, 328)))
    token = RNG.integers(0, 24, 64).astype(np.int32)
    gathered = np.concatenate([x, np.zeros((3, 328), np.float16)])[token].astype(np.float64)
    expected = np.maximum(gathered @ g.T.astype(np.float64), 0) * (gathered @ u.T.astype(np.float64))
    np.testing.assert_array_equal(kernel(x, g, u, token), expected)
    if target == "cuda:sm_90a":
        assert "gate and up of iteration k remain in flight" in kernel.source
    assert "tl::parallel<8>" in kernel.source  # 16 bytes at once
