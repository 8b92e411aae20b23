import tilelang
import tilelang.language as T


@tilelang.jit
def view_of_outstanding_accumulator(N, threads=128):
    @T.prim_func
    def main(Z: T.Tensor((N, N), "float16"), Out: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            packed = T.alloc_shared((64, 64), "float16")
            B = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            C3 = T.view(C, (64, 4, 16))
            T.clear(C)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(Z[0, k * 64], A_shared)
                T.copy(Z[k * 64, 0], packed)
                for i, g, j in T.Parallel(64, 4, 16):
                    C3[i, g, j] = C3[i, g, j] * 0.5
                for i, j in T.Parallel(64, 64):
                    B[i, j] = packed[i, j] * T.cast(2.0, "float16")
                T.gemm(A_shared, B, C)
            T.copy(C, Out)
    return main
