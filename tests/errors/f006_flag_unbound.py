import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, is_causal, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            if is_causal:
                B[bx, 0] = A[bx, 0]

    return main

# ---- expected ----
# error[T2C-F006]: the condition of this `if` needs the value of `is_causal`, which is left unbound
#   --> f006_flag_unbound.py:10:13
#    |
# 10 |             if is_causal:
#    |             ^^^^^^^^^^^^^
#   = help: bind it with `-D is_causal=...`, a default, or a call in the file
