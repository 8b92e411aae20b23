import tilelang
import tilelang.language as T


@tilelang.jit
def tile_atomic_of_private_array(N, threads=128):
    @T.prim_func
    def main(
        A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32"), C: T.Tensor((2, 4), "int32"),
        D: T.Tensor((8,), "float32"),
    ):
        with T.Kernel(3, threads=threads) as bx:
            A_local = T.alloc_local([8], "float32")
            C_local = T.alloc_local([2, 4], "int32")
            S = T.alloc_shared((8,), "float32")
            T.copy(A, A_local)
            for i in T.serial(2):
                for j in T.serial(4):
                    C_local[i, j] = i * 4 + j + bx
            T.clear(S)
            T.atomic_add(B, A_local)
            T.atomic_add(B[4:8], A_local[0:4])
            T.atomic_max(C, C_local)
            T.atomic_add(S, A_local)
            T.atomic_add(D, S)
            T.atomic_add(B, 1)

    return main
