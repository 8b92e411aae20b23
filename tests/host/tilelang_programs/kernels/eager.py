"""A program for TileLang: an eager function, called with tensors of two shapes, and compiled by sizes."""

import argparse

import torch

import tilelang
import tilelang.language as T
from tilelang.profiler import do_bench


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def matmul(A, B, block: int = 32, dtype: T.dtype = T.float16):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], dtype]
    B: T.Tensor[[K, N], dtype]
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block, block), dtype)
        B_shared = T.alloc_shared((block, block), dtype)
        C_local = T.alloc_fragment((block, block), T.float32)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
            T.copy(A[by * block, k * block], A_shared)
            T.copy(B[k * block, bx * block], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * block, bx * block])
    return C


def check(result, a, b):
    torch.testing.assert_close(result, a.float() @ b.float(), rtol=1e-2, atol=1e-2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--m", type=int, default=4096)
    size = parser.parse_args().m
    for m in (size, 2 * size):
        a = torch.randn(m, 64, device="cuda", dtype=torch.float16)
        b = torch.randn(64, 32).cuda().half()
        check(matmul(a, b), a, b)
    kernel = matmul.compile(M=size, N=32, K=64)
    a, b = torch.randn(size, 64).half().cuda(), torch.randn(64, 32).to("cuda").half()
    check(kernel(a, b), a, b)
    assert "matmul_kernel" in kernel.get_kernel_source()
    print(f"latency: {kernel.get_profiler(tilelang.TensorSupplyType.Integer).do_bench():.2f} ms")
    print(f"reference: {do_bench(lambda: a @ b):.2f} ms")
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
    print("all checks passed")
