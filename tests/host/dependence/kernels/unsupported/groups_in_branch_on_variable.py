# T2C-P004
import tilelang
import tilelang.language as T


@tilelang.jit
def groups_in_branch_on_variable(N, threads=384):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), Out: T.Tensor((64, 64), "float32"), Out2: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            S = T.alloc_shared((64, 64), "float32")
            R = T.alloc_shared((64, 64), "float32")
            tx = T.get_thread_binding()
            v = T.alloc_var("int32", 0)
            v = tx // 128
            T.clear(R)
            T.clear(S)
            if v == 1:
                with T.ws(0, 1):
                    T.copy(A, S)
            with T.ws(0):
                T.copy(A, R)
            with T.ws(1):
                T.copy(A, R)
            Out2[tx] = R[0, tx % 64]
            T.copy(S, Out)

    return main
