import tilelang
import tilelang.language as T


@tilelang.jit
def branch_on_scalar(N, threads=256):
    @T.prim_func
    def main(
        Q: T.Tensor((128, 64), "float16"),
        K: T.Tensor((N, 64), "float16"),
        V: T.Tensor((N, 64), "float16"),
        Out: T.Tensor((128, 64), "float32"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            Q_shared = T.alloc_shared((128, 64), "float16")
            K_shared = T.alloc_shared((64, 64), "float16")
            V_shared = T.alloc_shared((64, 64), "float16")
            S = T.alloc_fragment((128, 64), "float32")
            P = T.alloc_fragment((128, 64), "float16")
            O = T.alloc_fragment((128, 64), "float32")
            s = T.alloc_var("float32", 1.0)
            T.copy(Q, Q_shared)
            T.clear(O)
            for k in T.Pipelined(T.ceildiv(N, 64), num_stages=2):
                T.copy(K[k * 64, 0], K_shared)
                T.copy(V[k * 64, 0], V_shared)
                T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
                if s > 0.2:
                    for i, j in T.Parallel(128, 64):
                        O[i, j] = O[i, j] * 0.5
                s = s * 0.5
                T.copy(S, P)
                T.gemm(P, V_shared, O, policy=T.GemmWarpPolicy.FullRow)
            T.copy(O, Out)
    return main
