"""A program for TileLang: atomics into a zeroed output, a parsed size, autotuning, and a second kernel of the sizes."""

import argparse

import tilelang
import tilelang.language as T
import torch
from tilelang.autotuner import autotune


@autotune(configs=[{"block": 16, "split": 2}, {"block": 32, "split": 4}], warmup=1, rep=2)
@tilelang.jit
def split_matmul(M, N, K, block=32, split=2, dtype="float16"):
    part = T.ceildiv(K, split)

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), split, threads=64) as (bx, by, bz):
            A_shared = T.alloc_shared((block, 32), dtype)
            B_shared = T.alloc_shared((block, 32), dtype)
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(part, 32), num_stages=2):
                T.copy(A[by * block, bz * part + k * 32], A_shared)
                T.copy(B[bx * block, bz * part + k * 32], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            for i, j in T.Parallel(block, block):
                T.atomic_add(C[by * block + i, bx * block + j], C_local[i, j])

    return main


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--k", type=int, default=256)
    k = parser.parse_args().k
    kernel = split_matmul(64, 96, k)
    a = torch.randn(64, k, device="cuda", dtype=torch.float16)
    b = torch.randn(96, k, device="cuda", dtype=torch.float16)
    c = torch.zeros(64, 96, device="cuda")
    kernel(a, b, c)
    torch.testing.assert_close(c, a.float() @ b.float().T, rtol=1e-2, atol=1e-2)
    print(kernel.config)
    print("all checks passed")


if __name__ == "__main__":
    main()
