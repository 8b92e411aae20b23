# T2C-P004
import tilelang
import tilelang.language as T


@tilelang.jit
def group_in_branch_of_unknown_threads(N, threads=256):
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float32"),
        Out: T.Tensor((64, 64), "float32"),
        Out2: T.Tensor((64, 64), "float32"),
        first: T.int32,
        row: T.int32,
    ):
        with T.Kernel(1, threads=threads) as bx:
            S = T.alloc_shared((64, 64), "float32")
            R = T.alloc_shared((64, 64), "float32")
            tx = T.get_thread_binding()
            v = T.alloc_var("int32", 0)
            T.clear(R)
            T.clear(S)
            if tx + row < 50:
                with T.ws(0):
                    T.copy(A, S)
            if first < 3:
                with T.ws(0):
                    T.copy(A, R)
            T.copy(S, Out)
            T.copy(R, Out2)

    return main
