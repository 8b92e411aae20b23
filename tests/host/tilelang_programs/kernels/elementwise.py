"""A program for TileLang: a factory with scalars of Python, an output that the caller gives, and its own asserts."""

import argparse

import tilelang
import tilelang.language as T
import torch


def reference(x, y):
    return torch.where(x > 0, x, 0.1 * x) + y


@tilelang.jit(out_idx=[-1])
def leaky_add(M, N, block_M, block_N, slope, dtype="float32", threads=128):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype), Z: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                row, col = by * block_M + i, bx * block_N + j
                x = X[row, col]
                Z[row, col] = T.if_then_else(x > 0, x, x * slope) + Y[row, col]

    return main


def run(m, n):
    x, y = (torch.randn(m, n, dtype=torch.float32, device="cuda") for _ in range(2))
    kernel = leaky_add(m, n, 32, 64, slope=0.1)
    torch.testing.assert_close(kernel(x, y), reference(x, y), rtol=1e-5, atol=1e-5)
    profiler = kernel.get_profiler(tensor_supply_type=tilelang.TensorSupplyType.Normal)
    profiler.assert_allclose(reference, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--m", type=int, default=1000)
    parser.add_argument("--n", type=int, default=300)
    args, _ = parser.parse_known_args()
    run(args.m, args.n)
    print("all checks passed")
