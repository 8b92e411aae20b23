# T2C-P004
import tilelang
import tilelang.language as T


@tilelang.jit
def counter_of_half_a_group(N, threads=256):
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float32"),
        Out: T.Tensor((64, 64), "float32"),
        Out2: T.Tensor((64, 64), "float32"),
        first: T.int32,
    ):
        with T.Kernel(1, threads=threads) as bx:
            S = T.alloc_shared((64, 64), "float32")
            tx = T.get_thread_binding()
            c = T.alloc_var("int32", 0)
            T.copy(A, S)
            if tx < 64:
                c = 1
            with T.ws(0):
                if c == 1:
                    for i, j in T.Parallel(64, 64):
                        S[i, j] = S[i, j] * 2
            T.copy(S, Out)

    return main
