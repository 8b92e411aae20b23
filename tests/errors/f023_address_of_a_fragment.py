import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            F = T.alloc_fragment((64, 8), "float16")
            T.call_extern("handle", "__prefetch", T.access_ptr(F, "r"))

    return main

# ---- expected ----
# error[T2C-F023]: the base of T.access_ptr is `F`, a fragment buffer, whose elements are in the registers of many threads
#   --> f023_address_of_a_fragment.py:11:51
#    |
# 11 |             T.call_extern("handle", "__prefetch", T.access_ptr(F, "r"))
#    |                                                   ^^^^^^^^^^^^^^^^^^^^
#   = help: use T.alloc_local for what one thread holds, or a shared tile
