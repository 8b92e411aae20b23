import tilelang
import tilelang.language as T


@tilelang.jit
def factory(N):
    @T.prim_func
    def main(places: T.Tensor((N,), "int32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(N, threads=32) as bx:
            X = T.make_tensor(places[bx], (1,), "float32")
            Y[bx] = X[0]

    return main
# ---- expected ----
# error[T2C-F023]: the address of T.make_tensor is int32
#   --> f023_address_of_32_bits.py:10:17
#    |
# 10 |             X = T.make_tensor(places[bx], (1,), "float32")
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write `table: T.Tensor((n,), T.ptr)`, or `address: T.ptr`
