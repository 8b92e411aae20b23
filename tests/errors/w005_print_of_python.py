import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M=1024):
    @T.prim_func
    def main(A: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 128), threads=128) as bx:
            print("block", bx)
            for i in T.Parallel(128):
                A[bx * 128 + i] = 1.0
    return main


# ---- expected ----
# warning[T2C-W005]: `print` has no effect in the kernel
#   --> w005_print_of_python.py:10:13
#    |
# 10 |             print("block", bx)
#    |             ^^^^^^^^^^^^^^^^^^
#   = note: Python calls it when the file is traced; tile2cu does not execute the file
#   = help: T.print prints a value or a tile from the kernel
