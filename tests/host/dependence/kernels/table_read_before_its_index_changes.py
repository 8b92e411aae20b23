import tilelang
import tilelang.language as T


@tilelang.jit
def table_read_before_its_index_changes(N, threads=128):
    @T.prim_func
    def main(
        Z: T.Tensor((512, 64), "float16"), Tab: T.Tensor((4, 8), "int32"), Out: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=threads) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            taken = T.alloc_fragment((8,), "int32")
            v = T.alloc_var("int32", 0)
            T.clear(C_local)
            T.copy(Tab[v, 0:8], taken)
            v = v + 1
            for k in T.Pipelined(8, num_stages=2):
                if taken[k] != 0:
                    T.copy(Z[k * 64, 0], A_shared)
                    T.gemm(A_shared, A_shared, C_local, transpose_B=True)
            T.copy(C_local, Out)

    return main
