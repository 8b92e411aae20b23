# tile2cu: --kernel gemm_rellu
import tilelang
import tilelang.language as T


@tilelang.jit
def gemm_relu(A):
    M = T.const("M")
    A: T.Tensor((M,), "float32")
    with T.Kernel(T.ceildiv(M, 128)) as bx:
        for i in T.Parallel(128):
            A[bx * 128 + i] = T.max(A[bx * 128 + i], 0)

# ---- expected ----
# error[T2C-F004]: the file has no kernel `gemm_rellu`
#  --> f004_no_such_kernel.py:1:1
#   |
# 1 | # tile2cu: --kernel gemm_rellu
#   | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: did you mean `gemm_relu`?
