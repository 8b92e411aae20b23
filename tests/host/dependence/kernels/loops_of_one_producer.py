"""Three pipelined loops with a pipeline each: one per tile of the block, one after it, and one under a condition."""

import tilelang.language as T


def loops_of_one_producer(N):
    @T.prim_func
    def kernel(
        A: T.Tensor((128, N), "float16"),
        B: T.Tensor((64, N), "float16"),
        D: T.Tensor((64, N), "float16"),
        row: T.int32,
        Y: T.Tensor((128, 64), "float32"),
        Z: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            B_shared = T.alloc_shared((64, 64), "float16")
            D_shared = T.alloc_shared((64, 32), "float16")
            E_shared = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            for tile in T.serial(2):
                T.clear(C)
                for k in T.Pipelined(T.ceildiv(N, 64), num_stages=2):
                    T.copy(A[tile * 64, k * 64], A_shared)
                    T.copy(B[0, k * 64], B_shared)
                    T.gemm(A_shared, B_shared, C, transpose_B=True)
                T.copy(C, Y[tile * 64, 0])
            T.clear(C)
            for k in T.Pipelined(T.ceildiv(N, 32), num_stages=3):
                T.copy(D[0, k * 32], D_shared)
                T.gemm(D_shared, D_shared, C, transpose_B=True)
            if row > 64:
                first = row // 96
                for k in T.Pipelined(first, T.ceildiv(N, 64), num_stages=2):
                    T.copy(D[0, k * 64], E_shared)
                    T.gemm(E_shared, E_shared, C, transpose_A=True)
            T.copy(C, Z)

    return kernel
