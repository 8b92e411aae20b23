"""Tensors shown in other shapes, and the patches of a convolution."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu

CONVOLUTION = """
import tilelang
import tilelang.language as T


@tilelang.jit
def convolution(data, kernel, S=1, D=1, P=1, block_M=64, block_N=32, block_K=32):
    N, H, W, C, K, F = T.const("N, H, W, C, K, F")
    data: T.Tensor((N, H, W, C), "float16")
    kernel: T.Tensor((K, K, C, F), "float16")
    OH = (H + 2 * P - D * (K - 1) - 1) // S + 1
    OW = (W + 2 * P - D * (K - 1) - 1) // S + 1
    out = T.empty((N, OH, OW, F), "float16")
    with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=128) as (bx, by):
        data_shared = T.alloc_shared((block_M, block_K), "float16")
        kernel_shared = T.alloc_shared((block_K, block_N), "float16")
        out_local = T.alloc_fragment((block_M, block_N), "float32")
        kernel_flat = T.Tensor((K * K * C, F), "float16", kernel.data)
        out_flat = T.Tensor((N * OH * OW, F), "float16", out.data)
        T.clear(out_local)
        for k_iter in T.Pipelined(T.ceildiv(K * K * C, block_K), num_stages=2):
            T.im2col(data, data_shared, by, k_iter, K, S, D, P)
            T.copy(kernel_flat[k_iter * block_K, bx * block_N], kernel_shared)
            T.gemm(data_shared, kernel_shared, out_local)
        T.copy(out_local, out_flat[by * block_M, bx * block_N])
    return out
"""


def reference(data: np.ndarray, kernel: np.ndarray, stride: int, dilation: int, pad: int) -> np.ndarray:
    size = kernel.shape[0]
    padded = np.pad(data.astype(float), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    rows, columns = (
        (extent + 2 * pad - dilation * (size - 1) - 1) // stride + 1 for extent in (data.shape[1], data.shape[2])
    )
    out = np.zeros((data.shape[0], rows, columns, kernel.shape[3]))
    for y in range(size):
        for x in range(size):
            below = slice(y * dilation, y * dilation + rows * stride - stride + 1, stride)
            right = slice(x * dilation, x * dilation + columns * stride - stride + 1, stride)
            out += padded[:, below, right] @ kernel[y, x].astype(float)
    return out


@pytest.mark.parametrize(("stride", "dilation", "pad"), [(1, 1, 1), (2, 1, 0), (1, 2, 2)])
def test_convolution(stride: int, dilation: int, pad: int, tmp_path: Path) -> None:
    path = tmp_path / "convolution.py"
    path.write_text(CONVOLUTION)
    kernel = tile2cu.load(path, device="cpu", check=True, S=stride, D=dilation, P=pad, K=3)
    rng = np.random.default_rng(0)
    data = rng.integers(-3, 4, (2, 9, 7, 24)).astype(np.float16)
    weights = rng.integers(-3, 4, (3, 3, 24, 40)).astype(np.float16)
    np.testing.assert_array_equal(kernel(data, weights), reference(data, weights, stride, dilation, pad))
