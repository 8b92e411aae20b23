import tilelang
import tilelang.language as T


@tilelang.jit
def factory(N):
    @T.prim_func
    def main(places: T.Tensor((N,), T.ptr), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
            for i in T.Parallel(32):
                X = T.make_tensor(places[bx * 32 + i], (1,), "float32")
                Y[bx * 32 + i] = X[0]

    return main
# ---- expected ----
# error[T2C-F026]: T.make_tensor is inside T.Parallel
#   --> f026_tensor_in_parallel.py:11:17
#    |
# 11 |                 X = T.make_tensor(places[bx * 32 + i], (1,), "float32")
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: move it above the loop
