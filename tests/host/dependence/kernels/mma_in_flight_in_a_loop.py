"""An MMA that is in flight while the next iteration decodes its operand, in a loop that runs once per tile."""

import tilelang.language as T


def mma_in_flight_in_a_loop(N):
    @T.prim_func
    def kernel(
        A: T.Tensor((192, N), "float16"),
        B: T.Tensor((64, N), "int8"),
        Y: T.Tensor((192, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            packed = T.alloc_shared((64, 64), "int8")
            decoded = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            for tile in T.serial(3):
                T.clear(C)
                for k in T.Pipelined(T.ceildiv(N, 64) - 3 * tile, num_stages=2):
                    T.copy(A[tile * 64, k * 64], A_shared)
                    T.copy(B[0, k * 64], packed)
                    for i, j in T.Parallel(64, 64):
                        decoded[i, j] = T.cast(packed[i, j], "float16") * T.cast(0.5, "float16")
                    T.gemm(A_shared, decoded, C, transpose_B=True)
                T.copy(C, Y[tile * 64, 0])

    return kernel
