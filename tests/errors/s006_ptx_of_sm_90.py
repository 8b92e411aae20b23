import tilelang
import tilelang.language as T

TWICE = """
__device__ void twice(unsigned* x) { asm("mul.bf16x2 %0, %0, %1;" : "+r"(*x) : "r"(0x40004000)); }
"""


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "uint32"), B: T.Tensor((M, N), "uint32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            T.import_source(TWICE)
            x = T.alloc_local((1,), "uint32")
            x[0] = A[bx, 0]
            T.call_extern("handle", "twice", T.address_of(x[0]))
            B[bx, 0] = x[0]

    return main

# ---- expected ----
# error[T2C-S006]: sm_80 has no mul.bf16x2, which an asm statement of the file's inline C++ uses
#   --> s006_ptx_of_sm_90.py:14:13
#    |
# 14 |             T.import_source(TWICE)
#    |             ^^^^^^^^^^^^^^^^^^^^^^
#   = help: take a target from sm_90 on, or put it under `#if __CUDA_ARCH__ >= ...`
