"""GEMM with few tiles and a long K, whose iterations are distributed over blocks: split-K and stream-K."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_splitk(
    M,
    N,
    K,
    splits=4,  # blocks per tile
    block_M=128,
    block_N=128,
    block_K=32,
    num_stages=3,
    threads=256,
    dtype="float16",
):
    """C = A @ B. A second kernel adds the parts of K, always in the same order."""
    accum_dtype = "float32"
    add_M = 8  # rows of C that a block of the second kernel reduces
    add_N = 128  # and columns

    @T.prim_func
    def gemm_splitk_kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        parts = T.alloc_global((splits, M, N), accum_dtype)

        # multiply
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=threads) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            part = T.ceildiv(T.ceildiv(K, block_K), splits)
            first = bz * part
            T.clear(C_local)
            for ko in T.Pipelined(part, num_stages=num_stages):
                T.copy(A[by * block_M, (first + ko) * block_K], A_shared)
                T.copy(B[(first + ko) * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, parts[bz, by * block_M, bx * block_N])

        # add
        with T.Kernel(T.ceildiv(N, add_N), T.ceildiv(M, add_M), threads=128) as (bx, by):
            total = T.alloc_fragment((add_M, add_N), accum_dtype)
            T.clear(total)
            for s in T.serial(splits):
                for i, j in T.Parallel(add_M, add_N):
                    total[i, j] += parts[s, by * add_M + i, bx * add_N + j]
            T.copy(total, C[by * add_M, bx * add_N])

    return gemm_splitk_kernel


@tilelang.jit
def gemm_splitk_atomic(
    M, N, K, splits=4, block_M=128, block_N=128, block_K=32, num_stages=3, threads=256, dtype="float16"
):
    """C += A @ B in float32 by atomics, in an order that differs from run to run: no workspace."""
    accum_dtype = "float32"

    @T.prim_func
    def gemm_splitk_atomic_kernel(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), accum_dtype)
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=threads) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            part = T.ceildiv(T.ceildiv(K, block_K), splits)
            first = bz * part
            T.clear(C_local)
            for ko in T.Pipelined(part, num_stages=num_stages):
                T.copy(A[by * block_M, (first + ko) * block_K], A_shared)
                T.copy(B[(first + ko) * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.atomic_add(C[by * block_M, bx * block_N], C_local)

    return gemm_splitk_atomic_kernel


@tilelang.jit
def gemm_streamk(
    M,
    N,
    K,
    programs=132,  # blocks of the persistent grid: one per SM of an H200
    block_M=128,
    block_N=128,
    block_K=32,
    num_stages=3,
    threads=256,
    dtype="float16",
):
    """C += A @ B in float32. Every block executes the same number of iterations, or one less, of one tile or several.

    C must be initialised. Where blocks share a tile, their sums are added in an order that differs from run to run.
    """
    accum_dtype = "float32"

    @T.prim_func
    def gemm_streamk_kernel(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), accum_dtype)
    ):
        with T.Kernel(programs, threads=threads) as block:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            # Iterations are numbered over all tiles, one tile after another. This block's are `k_iter` to `last` - 1.
            per_tile = T.ceildiv(K, block_K)
            total = T.ceildiv(M, block_M) * T.ceildiv(N, block_N) * per_tile
            last = (block + 1) * (total // programs) + T.min(block + 1, total % programs)
            k_iter = T.alloc_var("int32", init=block * (total // programs) + T.min(block, total % programs))

            while k_iter < last:
                tile = k_iter // per_tile
                start = k_iter % per_tile
                count = T.min(per_tile - start, last - k_iter)
                m = tile // T.ceildiv(N, block_N) * block_M
                n = tile % T.ceildiv(N, block_N) * block_N
                T.clear(C_local)
                for ko in T.Pipelined(count, num_stages=num_stages):
                    T.copy(A[m, (start + ko) * block_K], A_shared)
                    T.copy(B[(start + ko) * block_K, n], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.atomic_add(C[m, n], C_local)
                k_iter += count

    return gemm_streamk_kernel
