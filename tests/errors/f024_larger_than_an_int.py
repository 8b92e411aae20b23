import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel():
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            for i in T.Parallel(256):
                B[bx * 256 + i] = A[((bx * 256 + i) * 4194304) // 4194304]

    return main

# ---- expected ----
# error[T2C-F024]: a part of an index is up to 4,290,772,992, which int32 does not hold
#   --> f024_larger_than_an_int.py:11:17
#    |
# 11 |                 B[bx * 256 + i] = A[((bx * 256 + i) * 4194304) // 4194304]
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: compute it in 64 bits: T.cast(bx, "int64") * ...
