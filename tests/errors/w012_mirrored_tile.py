import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((2, N), "float32")
            T.copy(X, S[0, :])
            T.copy(X, S[1, :])
            for i in T.Parallel(N):
                S[0, i] = S[0, N - 1 - i]
            for i in T.Parallel(N):
                S[1, i] = S[0, i] + S[0, N - 1 - i]
            for i in T.Parallel(N // 2):
                S[1, i] = S[1, i + N // 2] + S[1, i]
            for i in T.Parallel(N):
                S[0, i] = S[0, i] + T.if_then_else(i < 1, 0, S[1, i])
            T.copy(S[0, :], Y)

    return main


# ---- expected ----
# warning[T2C-W012]: iterations read elements of `S` that others write
#   --> w012_mirrored_tile.py:14:17
#    |
# 14 |                 S[0, i] = S[0, N - 1 - i]
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: the iterations of T.Parallel are unordered: this is a race
#   = help: read a copy from before the loop: T.copy(S, F) to a fragment F
