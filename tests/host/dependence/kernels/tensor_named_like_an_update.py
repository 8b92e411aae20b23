import tilelang
import tilelang.language as T


@tilelang.jit
def tensor_named_like_an_update(N, threads=128):
    @T.prim_func
    def main(S_new: T.Tensor((4,), "float32"), Out: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            S = T.alloc_shared((4,), "float32")
            S[0] = 1.0
            for k in T.serial(3):
                S[0] = S[0] + S_new[k]
                S[0] = S[0] * 2
            Out[0] = S[0]
            Out[1] = S_new[2]

    return main
