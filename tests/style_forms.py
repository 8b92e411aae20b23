"""Kernels against what the styles of libraries assume, as launches of one source: builds take most of the time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tile2cu
from tile2cu_runtime import Kernel

SOURCE = """
import tilelang
import tilelang.language as T

@tilelang.jit
def forms(M, N):
    @T.prim_func
    def main(
        X: T.Tensor((32, 64), "float32"),
        Turned: T.Tensor((64, 32), "float32"),
        scale: T.float32,
        shift: T.int32,
        offset: T.float16,
        negate: T.bool,
        Rows: T.Tensor((M, 64), "float32"),
        Sums: T.Tensor((64,), "float32"),
        Vector: T.Tensor((N,), "float32"),
        Mirrored: T.Tensor((N,), "float32"),
        Few: T.Tensor((3, 32), "float32"),
        Wide: T.Tensor((3, 512), "float32"),
        Line: T.Tensor((128,), "float32"),
        Total: T.Tensor((1,), "float32"),
        A: T.Tensor((64, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
        Long: T.Tensor((16, N), "float32"),
        Table: T.Tensor((5,), "int32"),
        Tall: T.Tensor((60, 36), "float32"),
        Firsts: T.Tensor((60,), "float32"),
        Seconds: T.Tensor((60,), "float32"),
        Largest: T.Tensor((3, 36), "float32"),
        Short: T.Tensor((16, 16), "float32"),
    ):
        # rows that are read across lanes are padded; scalars of several types
        with T.Kernel(1, threads=128) as bx:
            staged = T.alloc_shared((32, 64), "float32")
            turned = T.alloc_fragment((64, 32), "float32")
            T.copy(X, staged)
            for i, j in T.Parallel(64, 32):
                value = staged[j, i] * scale + T.cast(shift, "float32") + T.cast(offset, "float32")
                turned[i, j] = T.if_then_else(negate, -value, value)
            T.copy(turned, Turned)
        # sums of columns, which waves share, and of what there was
        with T.Kernel(1, threads=128) as bx:
            rows = T.alloc_fragment((16, 64), "float32")
            sums = T.alloc_fragment((64,), "float32")
            T.copy(Rows[0, 0], rows)
            T.fill(sums, 5.0)
            T.reduce_sum(rows, sums, dim=0, clear=False)
            T.copy(sums, Sums)
        # a vector that ends within 16 bytes
        with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
            line = T.alloc_shared((64,), "float32")
            T.copy(Vector[bx * 64], line)
            for i in T.Parallel(64):
                Mirrored[bx * 64 + i] = line[63 - i]
        # each wave holds a copy of the vector whose total all threads use
        with T.Kernel(3, threads=256) as bx:
            few = T.alloc_fragment((32,), "float32")
            wide = T.alloc_fragment((512,), "float32")
            total = T.alloc_fragment((1,), "float32")
            largest = T.alloc_fragment((1,), "float32")
            T.copy(Few[bx, 0:32], few)
            T.clear(wide)
            T.reduce_sum(few, total, dim=0)
            T.reduce_max(few, largest, dim=0)
            for i in T.Parallel(512):
                wide[i] = wide[i] + total[0] * 2.0 + largest[0]
            T.copy(wide, Wide[bx, 0:512])
        # shared memory that has a workspace alone, of few bytes
        with T.Kernel(1, threads=128) as bx:
            line = T.alloc_fragment((128,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(Line, line)
            T.reduce_sum(line, total, dim=0)
            T.copy(total, Total)
        # operands that are parts of swizzled tiles
        with T.Kernel(1, threads=128) as bx:
            a_tile = T.alloc_shared((64, 64), "float16")
            b_tile = T.alloc_shared((64, 64), "float16")
            product = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a_tile)
            T.copy(B, b_tile)
            T.gemm(a_tile[0:64, 32:64], b_tile[32:64, 0:64], product, clear_accum=True)
            T.copy(product, C)
        # a pipeline that starts at 1, and where a table says which columns one of its tiles has
        with T.Kernel(1, threads=64) as bx:
            even = T.alloc_shared((16, 16), "float32")
            tabled = T.alloc_shared((16, 16), "float32")
            weighted = T.alloc_fragment((16, 16), "float32")
            T.clear(weighted)
            for k in T.Pipelined(1, T.ceildiv(N, 16), num_stages=2):
                T.copy(Long[0, k * 16], even)
                T.copy(Long[0, Table[k] * 4], tabled)
                for i, j in T.Parallel(16, 16):
                    weighted[i, j] = weighted[i, j] * 2.0 + even[i, j] - tabled[i, j] * 4.0
            for k in T.Pipelined(2, T.ceildiv(N, 16), num_stages=2):
                T.copy(Long[0, k * 16], even)
                for i, j in T.Parallel(16, 16):
                    weighted[i, j] = weighted[i, j] * 2.0 + even[i, j]
            T.copy(weighted, Short)
        # threads that have places behind a tile's rows, next to which other blocks have theirs
        with T.Kernel(3, threads=128) as bx:
            tall = T.alloc_fragment((20, 36), "float32")
            each = T.alloc_fragment((20,), "float32")
            largest = T.alloc_fragment((36,), "float32")
            T.copy(Tall[bx * 20, 0], tall)
            T.reduce_sum(tall, each, dim=1)
            T.reduce_max(tall, largest, dim=0)
            T.copy(largest, Largest[bx, 0:36])
            T.copy(each, Firsts[bx * 20])
            for i in T.Parallel(20):
                Seconds[bx * 20 + i] = each[i] * 2.0

    return main
"""


def load(folder: Path, style: str, target: str, device: str) -> Kernel:
    path = folder / "forms.py"
    path.write_text(SOURCE, encoding="utf-8")
    return tile2cu.load(path, device=device, style=style, target=target, check=True)


def check(kernel: Kernel) -> None:
    """Small integers have exact sums; results are none before."""
    rng = np.random.default_rng(7)

    def numbers(*shape: int, dtype: type = np.float32) -> np.ndarray:
        return rng.integers(-9, 10, shape).astype(dtype)

    given = {
        "X": numbers(32, 64), "Rows": numbers(13, 64), "Vector": numbers(70), "Few": numbers(3, 32),
        "Line": numbers(128), "A": numbers(64, 64, dtype=np.float16), "B": numbers(64, 64, dtype=np.float16),
        "Long": numbers(16, 70), "Table": np.array([9, 2, 15, -1, 13], np.int32), "Tall": numbers(60, 36),
    }  # fmt: skip
    few, sums, padded = given["Few"], given["Tall"].sum(1), np.pad(given["Long"], ((0, 0), (4, 10)))
    short = np.zeros((16, 16), np.float32)
    for k in (1, 2, 3, 4):
        start = given["Table"][k] * 4
        short = short * 2 + padded[:, 4 + k * 16 :][:, :16] - padded[:, 4 + start :][:, :16] * 4
    for k in (2, 3, 4):
        short = short * 2 + padded[:, 4 + k * 16 :][:, :16]
    expected = {
        "Turned": -(given["X"].T * 2 - np.float32(3) + np.float32(np.float16(0.1))),
        "Sums": given["Rows"].sum(0) + 5,
        "Mirrored": np.pad(given["Vector"], (0, 58)).reshape(2, 64)[:, ::-1].ravel()[:70],
        "Wide": np.repeat(few.sum(1, keepdims=True) * 2 + few.max(1, keepdims=True), 512, 1),
        "Total": given["Line"].sum(keepdims=True),
        "C": given["A"][:, 32:].astype(np.float32) @ given["B"][32:].astype(np.float32),
        "Short": short,
        "Firsts": sums,
        "Seconds": sums * 2,
        "Largest": given["Tall"].reshape(3, 20, 36).max(1),
    }
    found = {name: np.full(result.shape, np.nan, np.float32) for name, result in expected.items()}
    kernel(**given, **found, scale=2.0, shift=-3, offset=0.1, negate=True)
    for name, result in expected.items():
        np.testing.assert_array_equal(found[name], result, err_msg=name)
