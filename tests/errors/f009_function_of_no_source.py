import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            T.import_source("__device__ void encode(float*);")
            T.call_extern("handle", "decode", T.address_of(B[bx, 0]))

    return main

# ---- expected ----
# error[T2C-F009]: no C++ of the file declares `decode`
#   --> f009_function_of_no_source.py:11:13
#    |
# 11 |             T.call_extern("handle", "decode", T.address_of(B[bx, 0]))
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: give its text before the call: T.import_source(text), which may be '#include "file.h"'
