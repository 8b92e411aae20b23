import tilelang
import tilelang.language as T


@tilelang.jit
def staged_result_changed_by_its_view(N, threads=128):
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), Out: T.Tensor((128, 64), "float16"), Out2: T.Tensor((128, 64), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((128, 64), "float32")
            C3 = T.view(C, (128, 4, 16))
            C_s = T.alloc_shared((128, 64), "float16")
            T.copy(A, A_s)
            T.clear(C)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[k * 64, 0], B_s)
                T.gemm(A_s, B_s, C)
            T.copy(C, C_s)
            for i, g, j in T.Parallel(128, 4, 16):
                C3[i, g, j] = C3[i, g, j] * 2 + 1
            T.copy(C_s, Out)

    return main
