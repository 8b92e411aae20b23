"""GEMM and GEMV with 4-bit weights: X @ W^T for many rows of X (gemm) and for few (gemv).

With weights = "int4", W[n, k] is (nibble - Z) * S. With weights = "fp4", W[n, k] is the number that the nibble encodes
as e2m1, times S. With weights = "nf4", W[n, k] is the value that Table has for the nibble, times S. With group, S has
one value per `group` columns of a row. The nibble of an even k is the lower half of byte k // 2 of its row.
"""

import tilelang
import tilelang.language as T


def decoded(nibble, weights, zero, table, dtype, zero_dtype):
    """The value that a nibble encodes, before its scale."""
    if weights == "int4" and zero is None:
        return T.cast(nibble - 8, dtype)
    if weights == "int4" and zero_dtype == "uint8":
        return T.cast(nibble - T.cast(zero, "int32"), dtype)
    if weights == "int4":
        return T.cast(nibble, dtype) - zero
    if weights == "fp4":
        # Sign, 2 exponent bits and 1 mantissa bit moved to those of a half whose exponent is 14 less: exact.
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
                # Weights are dequantised from shared memory to shared memory.
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
    group=32,  # a multiple of 32; None: a scale for each row, and zeros of 8
    block_N=None,
    block_K=None,
    num_stages=None,
    threads=None,
    dtype="float16",
    zero_dtype="uint8",
    partial_dtype="float16",  # of sums of 32 products; float32, slower, where they may exceed 65504
):
    """Y = X @ W^T, one row of X per block. K is a multiple of the group.

    Without group, S has one value per row, and Z is 8. With partial_dtype =
    float16, partial sums of 32 products are in float16 and must not overflow it.
    """
    accum_dtype = "float32"
    # Defaults: the fastest on an H200 (benchmarks/RESULTS.md). Without a group a wave is 924 blocks of 16 rows: where N
    # is known to need slightly more than one wave, or is dynamic, smaller blocks fill the second one.
    waves = N // 16 / 924 if isinstance(N, int) else 1.25
    small = group is None and 1 < waves < 1.5
    if block_N is None:
        block_N = 16 if group is None else 8  # rows of W per block
    if block_K is None:
        block_K = 512 if small else 1024 if group is None else 2048  # columns per iteration: whole groups
    if num_stages is None:
        num_stages = 4 if small else 3
    if threads is None:
        threads = 64 if small else 128
    chunk = 32  # consecutive columns per thread: 16 bytes
    chunks = block_K // chunk
    scale_shape = (N,) if group is None else (N, K // group)
    has_zeros = weights == "int4" and group is not None

    @T.macro
    def product(X, W, S, Z, Table, Y):
        with T.Kernel(T.ceildiv(N, block_N), M, threads=threads) as (bn, m):
            x = T.alloc_shared((block_K,), dtype)
            packed = T.alloc_shared((block_N, block_K // 2), "uint8")
            products = T.alloc_fragment((block_N, chunks, chunk), partial_dtype)
            partial = T.alloc_fragment((block_N, chunks), partial_dtype)
            sums = T.alloc_fragment((block_N, chunks), accum_dtype)
            total = T.alloc_fragment((block_N,), accum_dtype)
            scales = None if group is None else T.alloc_shared((block_N, block_K // group), dtype)
            zeros = T.alloc_shared((block_N, block_K // group), zero_dtype) if has_zeros else None
            if weights == "nf4":
                table = T.alloc_shared((16,), dtype)
                T.copy(Table, table)
            else:
                table = None

            T.clear(sums)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[m, ko * block_K], x)
                T.copy(W[bn * block_N, ko * (block_K // 2)], packed)
                if group is not None:
                    T.copy(S[bn * block_N, ko * (block_K // group)], scales)
                if has_zeros:
                    T.copy(Z[bn * block_N, ko * (block_K // group)], zeros)
                # A thread adds its columns' products, then these partial sums; one reduction over threads at the end.
                for i, c, j in T.Parallel(block_N, chunks, chunk):
                    nibble = T.cast(packed[i, (c * chunk + j) // 2], "int32") >> (4 * (j % 2)) & 15
                    zero = zeros[i, (c * chunk + j) // group] if has_zeros else None
                    w = decoded(nibble, weights, zero, table, dtype, zero_dtype)
                    products[i, c, j] = T.cast(w, partial_dtype) * T.cast(x[c * chunk + j], partial_dtype)
                T.reduce_sum(products, partial, dim=2)
                for i, c in T.Parallel(block_N, chunks):
                    if group is None:
                        sums[i, c] += T.cast(partial[i, c], accum_dtype)
                    else:
                        scale = T.cast(scales[i, c * chunk // group], accum_dtype)
                        sums[i, c] += scale * T.cast(partial[i, c], accum_dtype)
            T.reduce_sum(sums, total, dim=1)
            if group is None:
                for i in T.Parallel(block_N):
                    total[i] *= T.cast(S[bn * block_N + i], accum_dtype)
            T.copy(total, Y[m, bn * block_N])

    @T.prim_func
    def dequant_gemv_int4(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K // 2), "uint8"),
        S: T.Tensor(scale_shape, dtype),
        Z: T.Tensor(scale_shape, zero_dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        product(X, W, S, Z, None, Y)

    @T.prim_func
    def dequant_gemv_scaled(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K // 2), "uint8"),
        S: T.Tensor(scale_shape, dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        product(X, W, S, None, None, Y)

    @T.prim_func
    def dequant_gemv_table(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K // 2), "uint8"),
        S: T.Tensor(scale_shape, dtype),
        Table: T.Tensor((16,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        product(X, W, S, None, Table, Y)

    if weights == "nf4":
        return dequant_gemv_table
    return dequant_gemv_int4 if has_zeros else dequant_gemv_scaled
