import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            for k in T.serial(N):
                last = A[bx, k]
            B[bx, 0] = last

    return main

# ---- expected ----
# error[T2C-F009]: `last` was bound inside a loop or branch of the kernel that ended before this line
#   --> f009_name_ended_with_its_loop.py:12:24
#    |
# 12 |             B[bx, 0] = last
#    |                        ^^^^
#   = help: bind it before, or keep it in `last = T.alloc_var(...)`
