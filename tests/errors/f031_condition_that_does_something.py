import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(C: T.Tensor((1,), "int32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            while T.atomic_add(C[0], 1, return_prev=True) < M:
                Y[bx, 0] = 1.0

    return main


# ---- expected ----
# error[T2C-F031]: the condition of a `while` is asked again in each iteration, and this one does something
#   --> f031_condition_that_does_something.py:10:13
#    |
# 10 |             while T.atomic_add(C[0], 1, return_prev=True) < M:
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: do it in the body: before `while`, and at its end for the next iteration
