import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            total = 0
            for k in T.serial(N):
                total += A[bx, k]
            B[bx, 0] = total

    return main

# ---- expected ----
# error[T2C-F027]: `total` is bound again inside a loop of the kernel, but names carry no values to the next iteration
#   --> f027_carried_by_a_loop.py:12:17
#    |
# 12 |                 total += A[bx, k]
#    |                 ^^^^^^^^^^^^^^^^^
#   = help: declare it before the loop, `total = T.alloc_var(...)`, or give a value of one turn another name
