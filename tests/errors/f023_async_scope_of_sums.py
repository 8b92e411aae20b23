import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, block=64):
    @T.prim_func
    def main(A: T.Tensor((M, 8), "float16")):
        with T.Kernel(T.ceildiv(M, block)) as bx:
            S = T.alloc_shared((block, 8), "float16")
            tx = T.get_thread_binding()
            with T.attr("default", "async_scope", 1):
                for v in T.vectorized(8):
                    S[tx, v] = A[tx, v] + A[tx + 1, v]

    return main

# ---- expected ----
# error[T2C-F023]: cp.async copies 4, 8 or 16 bytes of a tensor to `S`, and this is no such copy
#   --> f023_async_scope_of_sums.py:14:21
#    |
# 14 |                     S[tx, v] = A[tx, v] + A[tx + 1, v]
#    |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write `for v in T.vectorized(n): S[i, v] = A[j, v]`, or leave T.attr out
