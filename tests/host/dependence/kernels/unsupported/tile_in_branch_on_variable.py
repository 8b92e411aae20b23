# T2C-P004
import tilelang
import tilelang.language as T


@tilelang.jit
def tile_in_branch_on_variable(N, threads=128):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), Out: T.Tensor((64, 64), "float32"), Out2: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=threads) as bx:
            S = T.alloc_shared((64, 64), "float32")
            tx = T.get_thread_binding()
            v = T.alloc_var("int32", 0)
            v = tx // 64
            T.copy(A, S)
            if v == 1:
                for i, j in T.Parallel(64, 64):
                    S[i, j] = S[i, j] * 2
            Out2[tx] = v
            T.copy(S, Out)

    return main
