import tilelang
import tilelang.language as T


@tilelang.jit
def reducer_in_an_inner_loop(N, threads=128):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), first: T.int32, Out: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            m = T.alloc_reducer((4,), "float32", op="sum")
            T.clear(m)
            for i, j in T.Parallel(64, 64):
                for u in T.serial(3):
                    m[u] += A[i, j] * u
            T.finalize_reducer(m)
            T.copy(m, Out)

    return main
