# T2C-P004
import tilelang
import tilelang.language as T


@tilelang.jit
def tile_of_private_values(N, threads=128):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), Out: T.Tensor((64, 64), "float32"), Out2: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=threads) as bx:
            S = T.alloc_shared((64, 64), "float32")
            tx = T.get_thread_binding()
            L = T.alloc_local((2,), "int32")
            L[0] = 3
            L[1] = tx // 64
            T.copy(A, S)
            if tx < 64:
                for i, j in T.Parallel(64, 64):
                    S[i, j] = S[i, j] * 2 + L[1] + L[0]
            Out2[tx] = L[0]
            T.copy(S, Out)

    return main
