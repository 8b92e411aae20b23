import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((block_M, 32), "float16")
            T.copy(A[bx * block_M, 0], A_shared, pipelined=True)

    return main

# ---- expected ----
# error[T2C-F017]: T.copy: got an unexpected keyword argument 'pipelined'
#   --> f017_unknown_argument.py:11:13
#    |
# 11 |             T.copy(A[bx * block_M, 0], A_shared, pipelined=True)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: it takes src, dst, coalesced_width, disable_tma, eviction_policy, prefer_instruction, annotations, loop_layout
