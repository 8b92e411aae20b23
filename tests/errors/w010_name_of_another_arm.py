import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, block=128):
    @T.prim_func
    def main(A: T.Tensor((M, block), "float32"), B: T.Tensor((M, block), "float32")):
        with T.Kernel(1, threads=128):
            anchor = A[0, 0]
            for k in T.serial(M):
                if k < 4:
                    for i in T.Parallel(block):
                        B[k, i] = A[k, i] - anchor
                else:
                    anchor = A[k, 0]
                    for i in T.Parallel(block):
                        B[k, i] = A[k, i] - anchor
    return main


# ---- expected ----
# warning[T2C-W010]: `anchor` is bound again, and later iterations of the loop read the value from before the loop
#   --> w010_name_of_another_arm.py:16:21
#    |
# 16 |                     anchor = A[k, 0]
#    |                     ^^^^^^
#   = note: the loop's body is traced once, as TileLang does: a name carries no value between iterations
#   = help: declare it before the loop, `anchor = T.alloc_var(...)`, or give this value another name
