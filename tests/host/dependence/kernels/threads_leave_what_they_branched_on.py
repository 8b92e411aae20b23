import tilelang
import tilelang.language as T


@tilelang.jit
def threads_leave_what_they_branched_on(N, threads=256):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), Out: T.Tensor((256,), "int32"), Out2: T.Tensor((256,), "int32"), Tab: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=threads) as bx:
            S = T.alloc_shared((64, 64), "float32")
            tx = T.get_thread_binding()
            v = T.alloc_var("int32", 0)
            v = Tab[tx]
            with T.ws(0):
                T.copy(A, S)
            if tx < 192:
                if v == 0:
                    v = v + 7
                    with T.ws(0):
                        Out[tx] = v
                    v = v * 2
                else:
                    v = v * 3
            Out2[tx] = v

    return main
