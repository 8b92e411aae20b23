import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            T.device_assert(block_M > 64, "a block has more than 64 rows")
            T.copy(A[bx, 0:8], B[bx, 0:8])

    return main

# ---- expected ----
# error[T2C-F019]: the assertion fails: a block has more than 64 rows
#   --> f019_device_assertion.py:10:13
#    |
# 10 |             T.device_assert(block_M > 64, "a block has more than 64 rows")
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
