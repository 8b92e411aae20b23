# tile2cu: --target hip:gfx942
import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            L = T.alloc_fragment((64, 64), "float32")
            tx = T.get_thread_binding(0)
            if tx < 64:
                row = X[bx, tx]
                T.fill(L, row)

    return main
# ---- expected ----
# error[T2C-P004]: only some threads of the block execute this operation on a whole tile
#   --> p004_part_of_a_workgroup_on_amd.py:15:17
#    |
# 15 |                 T.fill(L, row)
#    |                 ^^^^^^^^^^^^^^
# note: the branch depends on the thread
#   --> p004_part_of_a_workgroup_on_amd.py:13:13
#    |
# 13 |             if tx < 64:
#    |             ^^^^^^^^^^^
#   = note: the target has one barrier per workgroup: a part of its threads cannot work on tiles alone
#   = help: move it out of the `if`, with the barriers and the values of single threads that it needs
