# T2C-P004
import tilelang
import tilelang.language as T


@tilelang.jit
def tile_in_branch_behind_break(N, threads=128):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), Out: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            S = T.alloc_shared((64, 64), "float32")
            tx = T.get_thread_binding()
            c = T.alloc_var("int32", 0)
            T.copy(A, S)
            for k in T.serial(4):
                if tx // 64 == k:
                    break
                c = c + 1
            if c == 1:
                for i, j in T.Parallel(64, 64):
                    S[i, j] = S[i, j] * 2
            T.copy(S, Out)

    return main
