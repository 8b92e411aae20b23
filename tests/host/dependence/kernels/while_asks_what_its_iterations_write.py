"""A `while` on an element of a shared tile, or of a tensor, that one thread changes: all leave in the same iteration."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N):
    @T.prim_func
    def body(Tab: T.Tensor((8,), "int32"), Z: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128) as bx:
            S = T.alloc_shared((2,), "int32")
            tx = T.get_thread_binding()
            if tx == 0:
                S[0] = 5
                S[1] = 0
                Tab[0] = 3
                Tab[1] = 0
            while S[0] > 0:
                if tx == 5:
                    S[0] = S[0] - 1
                if tx == 77:
                    S[1] = S[1] + 2
            while Tab[0] > 0:
                if tx == 70:
                    Tab[0] = Tab[0] - 1
                if tx == 7:
                    Tab[1] = Tab[1] + 3
            Z[tx] = S[1] + Tab[1]

    return body
