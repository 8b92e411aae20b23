"""GEMM of float8 operands with one scale per group of 128 elements (DeepSeek-style block scaling)."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_fp8_scaled(
    M,
    N,
    K,
    block_M=128,
    parts=2,  # of 128 columns each; 1 for few rows, where more blocks fill the GPU, or without wgmma, where 2 spill
    num_stages=4,
    threads=256,
    dtype="float8_e4m3fn",
    out_dtype="bfloat16",
):
    """C = A @ B^T, where A[i, k] is scaled by scales_A[i, k // 128], and B[j, k] by
    scales_B[j // 128, k // 128].

    Tensor cores accumulate float8 products with fewer bits than float32 has. So they accumulate 128 at a time; each
    partial sum is scaled and added in float32.
    """
    assert parts in (1, 2), "a block computes 128 or 256 columns"
    group = 128  # elements of K, and rows of B, that share a scale
    groups = T.ceildiv(K, group)

    @T.macro
    def add(A_shared, B_part, scale, product, sums):
        T.gemm(A_shared, B_part, product, transpose_B=True, clear_accum=True)
        for i, j in T.Parallel(block_M, group):
            sums[i, j] += product[i, j] * scale[i]

    @T.prim_func
    def gemm_fp8_scaled_kernel(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        scales_A: T.Tensor((M, groups), "float32"),
        scales_B: T.Tensor((T.ceildiv(N, group), groups), "float32"),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, parts * group), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, group), dtype)
            B_shared = T.alloc_shared((parts * group, group), dtype)
            product = T.alloc_fragment((block_M, group), "float32")
            left = T.alloc_fragment((block_M, group), "float32")
            left_scale = T.alloc_fragment((block_M,), "float32")
            right = T.alloc_fragment((block_M, group), "float32")
            right_scale = T.alloc_fragment((block_M,), "float32")

            T.use_swizzle(panel_size=10)
            T.clear(left)
            if parts == 2:
                T.clear(right)
            for k in T.Pipelined(groups, num_stages=num_stages):
                T.copy(A[by * block_M, k * group], A_shared)
                T.copy(B[bx * parts * group, k * group], B_shared)
                for i in T.Parallel(block_M):
                    left_scale[i] = scales_A[by * block_M + i, k] * scales_B[bx * parts, k]
                    if parts == 2:
                        right_scale[i] = scales_A[by * block_M + i, k] * scales_B[bx * parts + 1, k]
                # One part after another, so that the registers hold one partial product besides the accumulators.
                add(A_shared, B_shared[0:group, :], left_scale, product, left)
                if parts == 2:
                    add(A_shared, B_shared[group : 2 * group, :], right_scale, product, right)
            T.copy(left, C[by * block_M, bx * parts * group])
            if parts == 2:
                T.copy(right, C[by * block_M, (bx * parts + 1) * group])

    return gemm_fp8_scaled_kernel
