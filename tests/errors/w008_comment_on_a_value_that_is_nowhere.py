import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M=1024):
    @T.prim_func
    def main(A: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 128), threads=128) as bx:
            # written ≥ once: a comment that is found, wrapped or not, in the emitted source
            for i in T.Parallel(128):
                A[bx * 128 + i] = 1.0
            unused = A[bx] + 1.0  # nothing reads it
    return main


# ---- expected ----
# warning[T2C-W008]: a comment is not in the emitted source
#   --> w008_comment_on_a_value_that_is_nowhere.py:13:13
#    |
# 13 |             unused = A[bx] + 1.0  # nothing reads it
#    |             ^^^^^^^^^^^^^^^^^^^^
#   = note: # nothing reads it
