import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = T.rng_rand_float()

    return main

# ---- expected ----
# error[T2C-F025]: T.rng_rand_float is before T.rng_init
#   --> f025_random_without_a_start.py:10:24
#    |
# 10 |             B[bx, 0] = T.rng_rand_float()
#    |                        ^^^^^^^^^^^^^^^^^^
