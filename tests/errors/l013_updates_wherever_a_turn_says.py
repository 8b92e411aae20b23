import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel():
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=128):
            acc = T.alloc_reducer((8,), "float32", op="sum")
            T.reducer_init(acc)
            for k in T.Parallel(256):
                T.reducer_update(acc[k // 32], A[k])
            T.finalize_reducer(acc)
            T.copy(acc, B)

    return main

# ---- expected ----
# error[T2C-L013]: which element of `acc` is updated is computed in each turn of the loop
#   --> l013_updates_wherever_a_turn_says.py:12:13
#    |
# 12 |             for k in T.Parallel(256):
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: index a reducer by the loop's variables, or add to a shared tile with T.atomic_add
