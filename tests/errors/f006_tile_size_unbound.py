import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((block_M, 32), "float16")
            T.copy(A[bx * block_M, 0], A_shared)

    return main

# ---- expected ----
# error[T2C-F006]: the shape of T.alloc_shared needs the value of `block_M`, which is left unbound
#   --> f006_tile_size_unbound.py:10:24
#    |
# 10 |             A_shared = T.alloc_shared((block_M, 32), "float16")
#    |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: bind it with `-D block_M=...`, a default, or a call in the file
