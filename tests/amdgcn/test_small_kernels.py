"""Atomics and scans for AMD, in kernels of a few lines: in waves of 64 on the CPU engine, and executed as code."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.amdgcn.code import assert_well_compiled
from tests.host.kernels import load_body
from tile2cu_runtime import Kernel

RNG = np.random.default_rng(5)
HISTOGRAM = """
    counts = T.alloc_shared((16,), "int32")
    T.clear(counts)
    for i in T.Parallel(256):
        if bx * 256 + i < N:
            T.atomic_add(counts[X[bx * 256 + i]], 1)
    for i in T.Parallel(16):
        T.atomic_add(Y[i], counts[i])
"""
EXTREMES = """
    for i in T.Parallel(256):
        if bx * 256 + i < N:
            T.atomic_max(Y[0], X[bx * 256 + i])
            T.atomic_min(Y[1], X[bx * 256 + i])
"""
TILES = """
    part = T.alloc_fragment((16, 64), {dtype!r})
    T.copy(X[bx * 16, 0], part)
    T.atomic_add(Y[0, 0], part)
"""
SCANS = """
    tile = T.alloc_shared((8, 100), "float32")
    rows = T.alloc_fragment((8, 100), "float32")
    T.copy(X, tile)
    T.cumsum(tile, dim=1, reverse=True)
    T.copy(tile, rows)
    T.cumsum(rows, dim=0)
    T.copy(rows, Y)
"""


@pytest.fixture(params=["cpu", "sim"])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def load(folder: Path, statements: str, params: str, device: str, **options: object) -> Kernel:
    kernel = load_body(folder, statements, params, target="hip:gfx942", device=device, **options)  # type: ignore[arg-type]
    if device == "sim":
        assert_well_compiled(kernel)
    return kernel


def accumulate(kernel: Kernel, *arrays: np.ndarray) -> None:
    """Calls it with its output, which it adds to, and asks for no finding."""
    kernel(*arrays)
    assert kernel.report is not None and not kernel.report.findings


def test_histogram(device: str, tmp_path: Path) -> None:
    params = 'X: T.Tensor((N,), "int32"), Y: T.Tensor((16,), "int32")'
    kernel = load(tmp_path, HISTOGRAM, params, device, arguments="N", grid="T.ceildiv(N, 256)")
    x, y = RNG.integers(0, 16, 700).astype(np.int32), np.arange(16, dtype=np.int32)
    accumulate(kernel, x, y)
    np.testing.assert_array_equal(y, np.arange(16) + np.bincount(x, minlength=16))


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_extremes(dtype: str, device: str, tmp_path: Path) -> None:
    params = f"X: T.Tensor((N,), {dtype!r}), Y: T.Tensor((2,), {dtype!r})"
    kernel = load(tmp_path, EXTREMES, params, device, arguments="N", grid="T.ceildiv(N, 256)")
    x, y = (100 * RNG.standard_normal(300)).astype(dtype), np.zeros(2, dtype)
    accumulate(kernel, x, y)
    np.testing.assert_array_equal(y, [x.max(), x.min()])


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_tiles_meet_in_memory(dtype: str, device: str, tmp_path: Path) -> None:
    numpy = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    params = f"X: T.Tensor((M, 64), {dtype!r}), Y: T.Tensor((16, 64), {dtype!r})"
    kernel = load(tmp_path, TILES.format(dtype=dtype), params, device, arguments="M", grid="T.ceildiv(M, 16)")
    x, y = RNG.integers(-4, 5, (41, 64)).astype(numpy), np.ones((16, 64), numpy)
    accumulate(kernel, x, y)
    padded = np.pad(x.astype(np.float64), ((0, 7), (0, 0))).reshape(3, 16, 64)
    np.testing.assert_array_equal(y.astype(np.float64), 1 + padded.sum(axis=0))


def test_scans(device: str, tmp_path: Path) -> None:
    params = 'X: T.Tensor((8, 100), "float32"), Y: T.Tensor((8, 100), "float32")'
    kernel = load(tmp_path, SCANS, params, device)
    x = RNG.integers(-9, 10, (8, 100)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x[:, ::-1].cumsum(axis=1)[:, ::-1].cumsum(axis=0))


def test_lanes_exchange_values(device: str, tmp_path: Path) -> None:
    """By DPP within rows of 16 lanes, by a swizzle within 32, by an address where neither reaches."""
    masks = (1, 2, 4, 8, 16, 32, 5)
    statements = "tx = T.get_thread_binding()\n" + "".join(
        f"Y[{line}, tx] = T.shfl_xor(X[tx], {mask})\n" for line, mask in enumerate(masks)
    )
    params = f'X: T.Tensor((128,), "float64"), Y: T.Tensor(({len(masks)}, 128), "float64")'
    kernel = load(tmp_path, statements, params, device)
    x = RNG.standard_normal(128)
    np.testing.assert_array_equal(kernel(x), [x[np.arange(128) ^ mask] for mask in masks])
    if device == "sim":  # two words of each value, in two waves
        (cost,) = kernel.costs
        assert (cost.executed("ds_swizzle_b32"), cost.executed("ds_bpermute_b32")) == (2 * 2, 2 * 2 * 2)


OUT_OF_RANGE = """
    for i in T.Parallel(64):
        Out[0, i] = T.cast(T.cast(X[i], "int32"), "int64")
        Out[1, i] = T.cast(T.cast(X[i], "uint32"), "int64")
        Out[2, i] = T.cast(T.cast(X[i], "int8"), "int64")
        Out[3, i] = T.cast(X[i], "int64")
        Out[4, i] = T.cast(T.cast(X[i], "uint64"), "int64")
        Out[5, i] = T.cast(T.cast(T.cast(N[i], {dtype!r}), "int32"), "int64")
"""


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_out_of_an_integer_s_range(dtype: str, device: str, tmp_path: Path) -> None:
    """As on the CPU engine and NVIDIA's GPUs, also where clang has several instructions, or none, for a conversion."""
    params = f'X: T.Tensor((64,), {dtype!r}), N: T.Tensor((64,), "int64"), Out: T.Tensor((6, 64), "int64")'
    kernel = load(tmp_path, OUT_OF_RANGE.format(dtype=dtype), params, device, threads=64)
    x, n, top = np.zeros(64, dtype), np.zeros(64, np.int64), 2**63
    x[:7] = [1e20, -1e20, 3e9, -3.5, np.inf, -np.inf, np.nan]
    n[:4] = [2**40 + 5, -(2**40), 2**31, -7]
    of_nan = -(2**31) if dtype == "float64" else 0
    expected = [
        [2**31 - 1, -(2**31), 2**31 - 1, -3, 2**31 - 1, -(2**31), of_nan, 0],
        [2**32 - 1, 0, 3 * 10**9, 0, 2**32 - 1, 0, -of_nan, 0],
        [-1, 0, -1, -3, -1, 0, 0, 0],
        [top - 1, -top, 3 * 10**9, -3, top - 1, -top, -top, 0],
        [-1, 0, 3 * 10**9, 0, -1, 0, -top, 0],
        [2**31 - 1, -(2**31), 2**31 - 1, -7, 0, 0, 0, 0],
    ]
    np.testing.assert_array_equal(kernel(x, n)[:, :8], expected)
