import tilelang
import tilelang.language as T


@tilelang.jit
def double(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = 0

    return main

# ---- expected ----
# error[T2C-E033]: no C function can be called `double`
#  --> e033_name_of_c.py:6:5
#   |
# 6 | def double(M, N, block_M=64):
#   |     ^^^^^^
#   = help: `--name other_name` names what is written
