"""Formulas of sums whose terms have a mask of infinities, for a size that is a constant."""

from pathlib import Path

from tile2cu.api import emit_text
from tile2cu.targets import find

KERNEL = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def row_scores(M, N, dim, block=32):
    @T.prim_func
    def main(Q: T.Tensor((M, dim), "float16"), K: T.Tensor((N, dim), "float16"), S: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            Q_shared = T.alloc_shared((block, dim), "float16")
            K_shared = T.alloc_shared((block, dim), "float16")
            scores = T.alloc_fragment((block, block), "float32")
            row = T.alloc_fragment((block,), "float32")
            T.copy(Q[bx * block, 0], Q_shared)
            T.fill(row, 0)
            for k in T.Pipelined(T.ceildiv(N, block), num_stages=1):
                T.copy(K[k * block, 0], K_shared)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.if_then_else(k * block + j >= N, -T.infinity("float32"), 0)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.exp2(scores[i, j])
                T.reduce_sum(scores, row, dim=1, clear=False)
            T.copy(row, S[bx * block])
    return main
"""


def test_a_mask_of_infinities_is_no_width_of_a_tile() -> None:
    (emitted,) = emit_text(
        Path("kernel.py"),
        kernel=None,
        target=find("cuda:sm_80"),
        bindings={"M": 128, "N": 4096, "dim": 64},
        text=KERNEL,
    )
    assert "S[m] = sum_n(exp2((-infinity if n // N else 0) + sum_d(Q[m, d] * K[n, d])))" in emitted.source
