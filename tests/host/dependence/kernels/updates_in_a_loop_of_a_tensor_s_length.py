"""All threads update an element, in a loop whose trip count is in the same tensor: they come equally often."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N):
    @T.prim_func
    def body(Tab: T.Tensor((8,), "int32"), C: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            for k in T.serial(Tab[3]):
                Tab[1] = Tab[1] - 1
                C[k] = 2.0

    return body
