"""A linear layer with 4-bit weights (linear_int4.py), for many rows of X: computed as Y^T = W @ X^T.

The weights are the GEMM's A operand, dequantised from shared memory into registers: no exchange between threads.
Scales are prefetched one iteration ahead.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def linear_int4_prefill(
    M,
    N,
    K,
    weights="int4",
    group=32,
    block_M=256,
    block_N=128,
    block_K=64,
    num_stages=4,
    threads=256,
    dtype="float16",
):
    """Y = X @ W^T, where W[n, k] is S[n, k // group] times nibble - 8, or the value of the nibble in fp4 (e2m1).

    The nibble of an even k is the lower half of byte k // 2 of its row. K is a multiple of the group. An iteration
    covers part of one group, or two groups.
    """
    accum_dtype = "float32"
    assert group % block_K == 0 or block_K == 2 * group

    @T.prim_func
    def linear_int4_prefill_kernel(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K // 2), "uint8"),
        S: T.Tensor((N, K // group), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            packed = T.alloc_shared((block_N, block_K // 2), "uint8")
            W_local = T.alloc_fragment((block_N, block_K), dtype)
            Y_local = T.alloc_fragment((block_N, block_M), accum_dtype)
            # Scales of the iteration's first and second group, and of the next iteration's.
            first = T.alloc_fragment((block_N,), dtype)
            second = T.alloc_fragment((block_N,), dtype)
            next_first = T.alloc_fragment((block_N,), dtype)
            next_second = T.alloc_fragment((block_N,), dtype)

            T.clear(Y_local)
            T.copy(S[bx * block_N : (bx + 1) * block_N, 0], next_first)
            T.copy(S[bx * block_N : (bx + 1) * block_N, 1], next_second)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[by * block_M, ko * block_K], X_shared)
                T.copy(W[bx * block_N, ko * (block_K // 2)], packed)
                g = (ko + 1) * (block_K // group) if block_K > group else (ko + 1) // (group // block_K)
                T.copy(next_first, first)
                T.copy(next_second, second)
                T.copy(S[bx * block_N : (bx + 1) * block_N, g], next_first)
                T.copy(S[bx * block_N : (bx + 1) * block_N, g + 1], next_second)
                for i, j in T.Parallel(block_N, block_K):
                    scale = T.if_then_else(j < group, first[i], second[i])
                    nibble = T.cast(packed[i, j // 2], "int32") >> (4 * (j % 2)) & 15
                    if weights == "fp4":
                        # Sign, 2 exponent and 1 mantissa bits moved to those of a half whose exponent is 14 less.
                        bits = T.cast((nibble & 8) << 12 | (nibble & 7) << 9, "uint16")
                        W_local[i, j] = T.cast(T.reinterpret(bits, "float16") * 16384, dtype) * scale
                    else:
                        W_local[i, j] = T.cast(nibble - 8, dtype) * scale
                T.gemm(W_local, X_shared, Y_local, transpose_B=True)

            for i, j in T.Parallel(block_N, block_M):
                Y[by * block_M + j, bx * block_N + i] = Y_local[i, j]

    return linear_int4_prefill_kernel
