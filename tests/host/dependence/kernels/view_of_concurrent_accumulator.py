import tilelang
import tilelang.language as T


@tilelang.jit
def view_of_concurrent_accumulator(N, threads=128):
    @T.prim_func
    def main(Z: T.Tensor((N, N), "float16"), Out: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            B_shared = T.alloc_shared((64, 64), "float16")
            S = T.alloc_fragment((64, 64), "float32")
            P = T.alloc_fragment((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            D = T.alloc_fragment((64, 64), "float32")
            C3 = T.view(C, (64, 4, 16))
            T.clear(D)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(Z[k * 64, 0], A_shared)
                T.copy(Z[0, k * 64], B_shared)
                T.gemm(A_shared, B_shared, S, clear_accum=True)
                T.gemm(B_shared, A_shared, C, clear_accum=True)
                for i, g, j in T.Parallel(64, 4, 16):
                    C3[i, g, j] = C3[i, g, j] * 0.5
                T.copy(S, P)
                T.gemm(P, A_shared, D)
                for i, j in T.Parallel(64, 64):
                    D[i, j] += C[i, j]
            T.copy(D, Out)
    return main
