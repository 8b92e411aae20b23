"""Rotary position embedding of queries and keys, between the QKV projection and attention."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-3, -2, -1])
def rope(batch, seq_len, heads, dim, block=64, threads=128, dtype="float16"):
    """Q and K: pairs (x[i], x[i + dim / 2]) of a head rotated by the angle of their position and i; V: copied.

    Cos and Sin hold the cosine and sine of the angle, for each position and i.
    """
    half_dim = dim // 2

    @T.prim_func
    def rope_kernel(
        QKV: T.Tensor((batch, seq_len, 3, heads, dim), dtype),
        Cos: T.Tensor((seq_len, half_dim), "float32"),
        Sin: T.Tensor((seq_len, half_dim), "float32"),
        Q: T.Tensor((batch, seq_len, heads, dim), dtype),
        K: T.Tensor((batch, seq_len, heads, dim), dtype),
        V: T.Tensor((batch, seq_len, heads, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block), heads, batch, threads=threads) as (bx, by, bz):
            for i, j in T.Parallel(block, half_dim):
                s = bx * block + i
                if s < seq_len:
                    c = Cos[s, j]
                    d = Sin[s, j]
                    q0 = T.cast(QKV[bz, s, 0, by, j], "float32")
                    q1 = T.cast(QKV[bz, s, 0, by, j + half_dim], "float32")
                    k0 = T.cast(QKV[bz, s, 1, by, j], "float32")
                    k1 = T.cast(QKV[bz, s, 1, by, j + half_dim], "float32")
                    Q[bz, s, by, j] = q0 * c - q1 * d
                    Q[bz, s, by, j + half_dim] = q1 * c + q0 * d
                    K[bz, s, by, j] = k0 * c - k1 * d
                    K[bz, s, by, j + half_dim] = k1 * c + k0 * d
            for i, j in T.Parallel(block, dim):
                s = bx * block + i
                if s < seq_len:
                    V[bz, s, by, j] = QKV[bz, s, 2, by, j]

    return rope_kernel
