"""All threads take a branch or a loop that asks a tensor which the kernel writes: they agree, and update once."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N):
    @T.prim_func
    def body(Tab: T.Tensor((8,), "int32"), Out: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=128) as bx:
            for i in T.Parallel(8):
                Tab[i] = i + 3
            if Tab[0] > 2:
                Tab[1] = Tab[1] - 1
            while Tab[2] > 1:
                Tab[2] = Tab[2] - 1
                if Tab[2] < 3:
                    Tab[3] = Tab[3] + Tab[2]
            for i in T.Parallel(8):
                Out[i] = Tab[i]

    return body
