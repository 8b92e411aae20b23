"""A module for TileLang with one import changed: a factory, a plain factory, and an autotuned one."""

import torch

import tile2cu.tilelang as tilelang
import tile2cu.tilelang.language as T
from tile2cu.tilelang.autotuner import AutoTuner

SCALE = 3 if torch.__version__ else 4  # only a running program knows


@tilelang.jit(out_idx=[-1], execution_backend="cython")
def scaled(M, N, block=16, bias=None, dtype=T.float32):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=32) as bx:
            for i, j in T.Parallel(block, N):
                B[bx * block + i, j] = A[bx * block + i, j] * SCALE

    return main


def plain_factory(n, dtype="float32"):
    blocks = T.ceildiv(n, 32)

    @T.prim_func
    def twice(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(blocks, threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * 2

    return twice


@tilelang.autotune(configs=[{"block": 4096, "threads": 2048}, {"block": 16, "threads": 32}, {"block": 8, "threads": 32}])
@tilelang.jit(out_idx=-1)
def tuned(M, block=None, threads=None):
    @T.prim_func
    def main(A: T.Tensor((M,), "int32"), B: T.Tensor((M,), "int32")):
        with T.Kernel(T.ceildiv(M, block), threads=threads) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] + 1

    return main


@tilelang.jit
def permuted(L, H, D, block=16):
    @T.prim_func
    def main(A: T.Tensor((L, H, D), "float32"), B: T.Tensor((L, H, D), "float16")):
        with T.Kernel(T.ceildiv(L, block), H, threads=32) as (bx, by):
            T.annotate_layout({A: T.Layout(A.shape, lambda l, h, d: [h, l, d])})
            T.copy(A[bx * block : (bx + 1) * block, by, :], B[bx * block : (bx + 1) * block, by, :])

    return main


def tuner(n):
    def kernel(block=None):
        @T.prim_func
        def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
            with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] - 1

        return main

    return AutoTuner.from_kernel(kernel, [{"block": 32}]).set_compile_args(out_idx=[-1])


@tilelang.jit
def dynamic(A, B):
    n = T.dynamic("n")
    A: T.Tensor[[n], T.int32]
    B: T.Tensor[[n], T.int32]
    with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
        for i in T.Parallel(32):
            B[bx * 32 + i] = A[bx * 32 + i] * 5
