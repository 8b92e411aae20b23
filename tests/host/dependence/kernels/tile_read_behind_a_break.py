"""A loop is left after a tile was written in the iteration: threads read the tile behind the loop."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N, threads=128):
    @T.prim_func
    def main(
        K: T.Tensor((N, 64), "float16"), limit: T.int32, Out: T.Tensor((64, 64), "float32"),
        Turned: T.Tensor((64, 64), "float32"), Last: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            S = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            W = T.alloc_shared((64, 64), "float32")
            v = T.alloc_var("int32", 0)
            T.clear(C)
            for k in T.serial(4):
                T.copy(K[k % (N // 64) * 64, 0], S)
                if k * 20 >= limit:
                    break
                T.gemm(S, S, C, transpose_B=True)
            for i, j in T.Parallel(64, 64):
                Turned[i, j] = S[j, i]
            T.copy(C, Out)
            while v < 3:
                for i, j in T.Parallel(64, 64):
                    W[i, j] = C[i, j] + v
                if v * 20 >= limit:
                    break
                if v == 1:
                    v = v + 2
                    continue
                T.sync_threads()
                v = v + 1
            for i, j in T.Parallel(64, 64):
                Last[i, j] = W[j, i]

    return main
