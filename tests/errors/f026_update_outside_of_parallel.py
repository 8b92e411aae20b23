import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            acc = T.alloc_reducer((1,), "float32", op="sum")
            T.reducer_init(acc)
            T.reducer_update(acc[0], A[0])
            T.finalize_reducer(acc)
            T.copy(acc, B)

    return main

# ---- expected ----
# error[T2C-F026]: T.reducer_update is outside of T.Parallel, where it is ambiguous which threads have a value
#   --> f026_update_outside_of_parallel.py:12:13
#    |
# 12 |             T.reducer_update(acc[0], A[0])
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: put it into `for i in T.Parallel(...):`, whose iterations give a value each
