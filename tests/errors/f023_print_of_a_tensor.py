import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            T.print(A)
            T.copy(A[bx, 0:8], B[bx, 0:8])

    return main

# ---- expected ----
# error[T2C-F023]: T.print does not take `A`, a tensor in global memory with 2 dimensions
#   --> f023_print_of_a_tensor.py:10:13
#    |
# 10 |             T.print(A)
#    |             ^^^^^^^^^^
#   = help: print single elements, `T.print(tile[i, j])`, or copy a part to a tile and print that
