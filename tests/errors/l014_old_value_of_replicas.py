import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(C: T.Tensor((64,), "int32"), Y: T.Tensor((64, N), "int32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            L = T.alloc_fragment((64,), "int32")
            for i in T.Parallel(64):
                L[i] = T.atomic_add(C[i], 1, return_prev=True)
            for i in T.Parallel(64):
                Y[i, bx] = L[i]

    return main


# ---- expected ----
# error[T2C-L014]: only one thread gets the old value of `C`, and 2 hold each element here
#   --> l014_old_value_of_replicas.py:12:17
#    |
# 12 |                 L[i] = T.atomic_add(C[i], 1, return_prev=True)
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# note: the loop also writes a fragment
#   --> l014_old_value_of_replicas.py:11:13
#    |
# 11 |             for i in T.Parallel(64):
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write to a tile in shared memory instead of the fragment
