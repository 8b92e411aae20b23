"""GEMM for every type and layout of operands, with a fused epilogue."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm(
    M,
    N,
    K,
    transpose_A=False,  # A is (K, M)
    transpose_B=False,  # B is (N, K)
    bias=False,
    activation="",  # "relu" or "gelu"
    block_M=128,
    block_N=128,
    block_K=64,
    num_stages=3,
    threads=256,
    dtype="float16",  # bfloat16, float8_e4m3fn, float8_e5m2 and int8 too
    out_dtype="float16",
    accum_dtype="float32",  # int32 for int8
):
    """C = f(A @ B + Bias).

    With transpose_A, A is (K, M), and its transpose is multiplied. With transpose_B, B is (N, K), and its transpose is
    multiplied. With bias, Bias has one value per column. Without bias, Bias is zero. With activation = "gelu", f is
    gelu. With activation = "relu", f is relu. Without activation, f is the identity.
    """
    A_shape, A_tile = ((K, M), (block_K, block_M)) if transpose_A else ((M, K), (block_M, block_K))
    B_shape, B_tile = ((N, K), (block_N, block_K)) if transpose_B else ((K, N), (block_K, block_N))

    @T.macro
    def product(A, B, Bias, C):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared(A_tile, dtype)
            B_shared = T.alloc_shared(B_tile, dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if transpose_A:
                    T.copy(A[ko * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, ko * block_K], A_shared)
                if transpose_B:
                    T.copy(B[bx * block_N, ko * block_K], B_shared)
                else:
                    T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=transpose_A, transpose_B=transpose_B)

            # Fused epilogue: C is stored once, with bias and activation applied.
            if bias:
                for i, j in T.Parallel(block_M, block_N):
                    C_local[i, j] += Bias[bx * block_N + j]
            if activation == "relu":
                for i, j in T.Parallel(block_M, block_N):
                    C_local[i, j] = T.max(C_local[i, j], 0)
            if activation == "gelu":
                for i, j in T.Parallel(block_M, block_N):
                    C_local[i, j] = 0.5 * C_local[i, j] * (1 + T.erf(C_local[i, j] * 0.70710678))
            T.copy(C_local, C[by * block_M, bx * block_N])

    @T.prim_func
    def gemm_kernel(A: T.Tensor(A_shape, dtype), B: T.Tensor(B_shape, dtype), C: T.Tensor((M, N), out_dtype)):
        product(A, B, None, C)

    @T.prim_func
    def gemm_bias_kernel(
        A: T.Tensor(A_shape, dtype),
        B: T.Tensor(B_shape, dtype),
        Bias: T.Tensor((N,), accum_dtype),
        C: T.Tensor((M, N), out_dtype),
    ):
        product(A, B, Bias, C)

    return gemm_bias_kernel if bias else gemm_kernel
