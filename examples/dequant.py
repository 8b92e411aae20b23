"""Products with weights of 4 bits: X @ W^T for many rows of X (gemm) and for few (gemv).

W[n, k] is (nibble - Z) * S for "int4", and a number of 16 values times S for "fp4" (e2m1) and "nf4" (any table). S, and
Z, have one value for each `group` of a row's columns; zeros that are whole numbers may be uint8. The nibble of an even k is the lower half of byte k // 2 of its row.
"""

import tilelang
import tilelang.language as T


def decoded(nibble, weights, zero, table, dtype, zero_dtype):
    """The number that a nibble stands for, before its scale."""
    if weights == "int4" and zero_dtype == "uint8":
        return T.cast(nibble - T.cast(zero, "int32"), dtype)
    if weights == "int4":
        return T.cast(nibble, dtype) - zero
    if weights == "fp4":
        # Sign, 2 bits of exponent and 1 of mantissa at their places in a half, whose exponent is 14 less: exact.
        bits = T.cast((nibble & 8) << 12 | (nibble & 7) << 9, "uint16")
        return T.cast(T.reinterpret(bits, "float16") * 16384, dtype)
    return table[nibble]


@tilelang.jit(out_idx=[-1])
def dequant_gemm(
    M,
    N,
    K,
    weights="int4",
    group=32,
    block_M=64,
    block_N=64,
    block_K=64,
    num_stages=2,
    threads=128,
    dtype="float16",
    zero_dtype="float16",
):
    """Y = X @ W^T. K is a multiple of the group."""
    accum_dtype = "float32"
    packed_shape, groups = (N, K // 2), (N, K // group)

    @T.macro
    def product(X, W, S, Z, Table, Y):
        # grid dims: (#blocks along N, #blocks along M)
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            packed = T.alloc_shared((block_N, block_K // 2), "uint8")
            W_shared = T.alloc_shared((block_N, block_K), dtype)
            Y_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            if weights == "nf4":
                table = T.alloc_shared((16,), dtype)
                T.copy(Table, table)
            else:
                table = None

            T.clear(Y_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[by * block_M, ko * block_K], X_shared)
                T.copy(W[bx * block_N, ko * (block_K // 2)], packed)
                # Weights become numbers on their way from shared memory to shared memory.
                for i, j in T.Parallel(block_N, block_K):
                    n, g = bx * block_N + i, (ko * block_K + j) // group
                    nibble = T.cast(packed[i, j // 2], "int32") >> (4 * (j % 2)) & 15
                    zero = Z[n, g] if weights == "int4" else None
                    W_shared[i, j] = decoded(nibble, weights, zero, table, dtype, zero_dtype) * S[n, g]
                T.gemm(X_shared, W_shared, Y_local, transpose_B=True)
            T.copy(Y_local, Y[by * block_M, bx * block_N])

    @T.prim_func
    def dequant_gemm_int4(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor(packed_shape, "uint8"),
        S: T.Tensor(groups, dtype),
        Z: T.Tensor(groups, zero_dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        product(X, W, S, Z, None, Y)

    @T.prim_func
    def dequant_gemm_fp4(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor(packed_shape, "uint8"),
        S: T.Tensor(groups, dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        product(X, W, S, None, None, Y)

    @T.prim_func
    def dequant_gemm_table(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor(packed_shape, "uint8"),
        S: T.Tensor(groups, dtype),
        Table: T.Tensor((16,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        product(X, W, S, None, Table, Y)

    return {"int4": dequant_gemm_int4, "fp4": dequant_gemm_fp4, "nf4": dequant_gemm_table}[weights]


@tilelang.jit(out_idx=[-1])
def dequant_gemv(
    M,
    N,
    K,
    weights="int4",
    group=32,
    block_N=8,  # rows of W a block
    block_K=1024,  # columns a turn
    num_stages=3,
    threads=128,
    dtype="float16",
    zero_dtype="float16",  # uint8 is faster
    partial_dtype="float32",  # of a thread's sums, one for each column of a turn: float16 is faster
):
    """Y = X @ W^T, one row of X a block. K is a multiple of the group."""
    accum_dtype = "float32"
    packed_shape, groups = (N, K // 2), (N, K // group)

    @T.macro
    def product(X, W, S, Z, Table, Y):
        # grid dims: (#blocks of rows of W, rows of X)
        with T.Kernel(T.ceildiv(N, block_N), M, threads=threads) as (bn, m):
            x = T.alloc_shared((block_K,), dtype)
            packed = T.alloc_shared((block_N, block_K // 2), "uint8")
            partial = T.alloc_fragment((block_N, block_K), partial_dtype)
            total = T.alloc_fragment((block_N,), accum_dtype)
            if weights == "nf4":
                table = T.alloc_shared((16,), dtype)
                T.copy(Table, table)
            else:
                table = None

            T.clear(partial)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[m, ko * block_K], x)
                T.copy(W[bn * block_N, ko * (block_K // 2)], packed)
                # Each thread sums the columns that it holds; they meet once, at the end.
                for i, j in T.Parallel(block_N, block_K):
                    n, g = bn * block_N + i, (ko * block_K + j) // group
                    nibble = T.cast(packed[i, j // 2], "int32") >> (4 * (j % 2)) & 15
                    zero = Z[n, g] if weights == "int4" else None
                    w = decoded(nibble, weights, zero, table, dtype, zero_dtype) * S[n, g]
                    partial[i, j] += T.cast(w, partial_dtype) * T.cast(x[j], partial_dtype)
            T.reduce_sum(partial, total, dim=1)
            T.copy(total, Y[m, bn * block_N])

    @T.prim_func
    def dequant_gemv_int4(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor(packed_shape, "uint8"),
        S: T.Tensor(groups, dtype),
        Z: T.Tensor(groups, zero_dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        product(X, W, S, Z, None, Y)

    @T.prim_func
    def dequant_gemv_fp4(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor(packed_shape, "uint8"),
        S: T.Tensor(groups, dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        product(X, W, S, None, None, Y)

    @T.prim_func
    def dequant_gemv_table(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor(packed_shape, "uint8"),
        S: T.Tensor(groups, dtype),
        Table: T.Tensor((16,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        product(X, W, S, None, Table, Y)

    return {"int4": dequant_gemv_int4, "fp4": dequant_gemv_fp4, "nf4": dequant_gemv_table}[weights]
