import tilelang
import tilelang.language as T


@tilelang.jit
def counters_of_groups(N, threads=256):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), Out: T.Tensor((64, 64), "float32"), Out2: T.Tensor((64, 64), "float32"), first: T.int32):
        with T.Kernel(1, threads=threads) as bx:
            S = T.alloc_shared((64, 64), "float32")
            R = T.alloc_shared((64, 64), "float32")
            c = T.alloc_var("int32", 0)
            T.copy(A, R)
            T.copy(A, S)
            with T.ws(0):
                c = 0
                for k in T.serial(6):
                    if c > first:
                        for i, j in T.Parallel(64, 64):
                            S[i, j] = S[i, j] * 2
                    c = c + 1
            with T.ws(1):
                c = 0
                for k in T.serial(6):
                    c = c + 2
                    if c > first:
                        for i, j in T.Parallel(64, 64):
                            R[i, j] = R[i, j] + c
                    if c == 8:
                        break
            T.copy(S, Out)
            T.copy(R, Out2)

    return main
