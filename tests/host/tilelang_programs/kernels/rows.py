"""A program for TileLang: rows in registers, macros, a configuration as a dataclass, and a run over several types."""

import itertools
from dataclasses import dataclass

import tilelang
import tilelang.language as T
import torch
from tilelang.utils.tensor import torch_assert_close


@dataclass
class Config:
    rows: int = 4
    threads: int = 64


@T.macro
def normalise(x, square, scale, rows, columns, eps):
    for i, j in T.Parallel(rows, columns):
        square[i, j] = x[i, j] * x[i, j]
    T.reduce_sum(square, scale, dim=1)
    for i in T.Parallel(rows):
        scale[i] = T.rsqrt(scale[i] / columns + eps)
    for i, j in T.Parallel(rows, columns):
        x[i, j] *= scale[i]


def rms_norm(M, N, dtype, config):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, config.rows), threads=config.threads) as bx:
            x = T.alloc_fragment((config.rows, N), "float32")
            square = T.alloc_fragment((config.rows, N), "float32")
            scale = T.alloc_fragment((config.rows,), "float32")
            T.copy(X[bx * config.rows, 0], x)
            normalise(x, square, scale, config.rows, N, 1e-6)
            T.copy(x, Y[bx * config.rows, 0])

    return main


def reference(x):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def main():
    for dtype, config in itertools.product(("float16", "float32"), (Config(), Config(rows=8, threads=128))):
        kernel = tilelang.compile(rms_norm(37, 256, dtype, config), out_idx=-1, target="cuda")
        x = torch.randn(37, 256, device="cuda").to(getattr(torch, dtype))
        torch_assert_close(kernel(x), reference(x), rtol=1e-2, atol=1e-2, max_mismatched_ratio=0.0)
    print("all checks passed")


if __name__ == "__main__":
    main()
