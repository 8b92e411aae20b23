import tilelang
import tilelang.language as T


@tilelang.jit
def exit(N, block=64):
    @T.prim_func
    def main(A: T.Tensor((N,), "float16")):
        with T.Kernel(T.ceildiv(N, block)) as bx:
            A[bx] = 0

    return main

# ---- expected ----
# error[T2C-E033]: no C function can be called `exit`
#  --> e033_function_of_the_c_library.py:6:5
#   |
# 6 | def exit(N, block=64):
#   |     ^^^^
#   = help: `--name other_name` names what is written
