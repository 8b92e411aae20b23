import tilelang
import tilelang.language as T


@tilelang.jit
def copy_of_tile_before_write_by_view(N, threads=128):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), Out: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            S = T.alloc_shared((64, 64), "float32")
            F = T.alloc_fragment((64, 64), "float32")
            F3 = T.reshape(F, (64, 4, 16))
            T.copy(A, A_s)
            T.clear(S)
            T.gemm(A_s, A_s, F, transpose_B=True, clear_accum=True)
            T.copy(F, Out)
            T.copy(S, F)
            for i, g, j in T.Parallel(64, 4, 16):
                F3[i, g, j] = F3[i, g, j] + i * 64 + g * 16 + j
            for i, j in T.Parallel(64, 64):
                Out[i, j] = F[j, i] * 2 + F[63 - i, j]

    return main
