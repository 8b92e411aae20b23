"""T.StridedTensor: tensors with gaps between their rows, or other orders of their elements."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import ArgumentError, LaunchError

RNG = np.random.default_rng(0)
SCALE = """
    held = T.alloc_shared((16, 64), "float32")
    T.copy(X[bx * 16, 0], held)
    for i, j in T.Parallel(16, 64):
        held[i, j] = held[i, j] * 2
    T.copy(held, Y[bx * 16, 0])
"""
PARAMS = 'X: T.StridedTensor((M, N), (S, 1), "float32"), Y: T.StridedTensor((M, N), (R, 1), "float32")'
HEAD = 'M, N, S, R = T.dynamic("M, N, S, R")'


@pytest.mark.sweep("target")
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize(("columns", "gap"), [(64, 0), (64, 16), (50, 3), (50, 30), (1, 7)])
def test_rows_with_gaps_between_them(columns: int, gap: int, target: str, tmp_path: Path) -> None:
    kernel = load_body(tmp_path, SCALE, PARAMS, grid="T.ceildiv(M, 16)", head=HEAD, target=target)
    whole = RNG.integers(-9, 10, (40, columns + gap)).astype(np.float32)
    out = np.full((40, columns + 5), -1, np.float32)
    kernel(whole[:, :columns], out[:, :columns])
    np.testing.assert_array_equal(out[:, :columns], whole[:, :columns] * 2)
    np.testing.assert_array_equal(out[:, columns:], -1)


def test_columns_first(tmp_path: Path) -> None:
    statements = """
        for i, j in T.Parallel(33, 20):
            Y[i, j] = X[i, j]
    """
    params = 'X: T.StridedTensor((33, 20), (1, 40), "float16"), Y: T.Tensor((33, 20), "float16")'
    x = RNG.integers(-9, 10, (20, 40)).astype(np.float16).T[:33]
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), x)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("stride", ["2", "S"])
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_elements_with_gaps_between_them(stride: str, target: str, tmp_path: Path) -> None:
    params = f'X: T.StridedTensor((8, 64), (128, {stride}), "float16"), Y: T.Tensor((8, 64), "float16")'
    kernel = load_body(tmp_path, "T.copy(X, Y)", params, head='S = T.dynamic("S")', target=target)
    x = RNG.integers(-9, 10, (8, 128)).astype(np.float16)[:, ::2]
    np.testing.assert_array_equal(kernel(x), x)


@pytest.mark.parametrize("stride", ["2", "S"])
def test_one_row_with_gaps(stride: str, tmp_path: Path) -> None:
    params = f'X: T.StridedTensor((64,), ({stride},), "float32"), Y: T.Tensor((64,), "float32")'
    statements = """
        held = T.alloc_shared((64,), "float32")
        T.copy(X, held)
        T.copy(held, Y)
    """
    x = RNG.integers(-9, 10, 128).astype(np.float32)[::2]
    np.testing.assert_array_equal(load_body(tmp_path, statements, params, head='S = T.dynamic("S")')(x), x)


def test_strides_that_are_no_such_are_refused(tmp_path: Path) -> None:
    params = 'X: T.StridedTensor((8, 64), (72, 1), "float32"), Y: T.Tensor((8, 64), "float32")'
    kernel = load_body(tmp_path, "T.copy(X, Y)", params)
    x = RNG.standard_normal((8, 72)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x[:, :64]), x[:, :64])
    x = RNG.standard_normal((8, 80)).astype(np.float32)
    with pytest.raises(ArgumentError, match=r"must have the strides \(72, 1\)"):
        kernel(x[:, :64])


def test_a_dense_tensor_has_no_gaps(tmp_path: Path) -> None:
    params = 'X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")'
    x = RNG.standard_normal((8, 80)).astype(np.float32)
    with pytest.raises(ArgumentError, match="must be contiguous"):
        load_body(tmp_path, "T.copy(X, Y)", params)(x[:, :64])


GEMM = """
    A_shared, B_shared = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
    C_local = T.alloc_fragment((64, 64), "float32")
    T.clear(C_local)
    for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
        T.copy(A[{batch}by * 64, k * 64], A_shared)
        T.copy(B[bx * 64, k * 64], B_shared)
        T.gemm(A_shared, B_shared, C_local, transpose_B=True)
    T.copy(C_local, C[{batch}by * 64, bx * 64])
"""


def test_tma_moves_rows_with_gaps_between_them(tmp_path: Path) -> None:
    """Rows of a result that start elsewhere leave from registers; operands' are refused."""
    params = (
        'A: T.StridedTensor((M, K), (S, 1), "float16"), B: T.StridedTensor((N, K), (72, 1), "float16"), '
        'C: T.StridedTensor((M, N), (R, 1), "float16")'
    )
    launch = {"grid": "T.ceildiv(N, 64), T.ceildiv(M, 64)", "blocks": "(bx, by)", "target": "cuda:sm_90a"}
    head = 'M, N, K, S, R = T.dynamic("M, N, K, S, R")'
    kernel = load_body(tmp_path, GEMM.format(batch=""), params, head=head, **launch)
    assert "tl::tma_load(A_map" in kernel.source and "tl::tma_store(" in kernel.source
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((70, 136), (90, 72)))
    expected = a[:, :67].astype(np.float64) @ b[:, :67].astype(np.float64).T
    for gap in (38, 5):
        c = np.full((70, 90 + gap), -1, np.float16)
        kernel(a[:, :67], b[:, :67], c[:, :90])
        np.testing.assert_array_equal(c[:, :90], expected)
        np.testing.assert_array_equal(c[:, 90:], -1)
    odd = np.zeros((70, 131), np.float16)
    kernel.otherwise = None  # no kernel without TMA takes the call
    with pytest.raises(LaunchError, match="NOT_SUPPORTED"):
        kernel(odd[:, :67], b[:, :67], c[:, :90])


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("strides", "moved"), [("(72, S, 1)", True), ("(R, S, 1)", False), ("(S, 1, 72)", False)])
def test_planes_with_gaps(strides: str, moved: bool, tmp_path: Path) -> None:
    """Rows of planes lie one beside the other, as heads of a token do."""
    params = (
        f'A: T.StridedTensor((2, M, K), {strides}, "float16"), B: T.Tensor((N, K), "float16"), '
        'C: T.Tensor((2, M, N), "float16")'
    )
    grid = "T.ceildiv(N, 64), T.ceildiv(M, 64), 2"
    head = 'M, N, K, S, R = T.dynamic("M, N, K, S, R")' if "R" in strides else 'M, N, K, S = T.dynamic("M, N, K, S")'
    launch = {"grid": grid, "blocks": "(bx, by, bz)", "target": "cuda:sm_90a", "head": head}
    kernel = load_body(tmp_path, GEMM.format(batch="bz, "), params, **launch)
    assert ("tl::tma_load(A_map" in kernel.source) == moved
    if moved or "R" in strides:
        a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((70, 2, 72), (80, 72)))
        planes = a.transpose(1, 0, 2)
        np.testing.assert_array_equal(kernel(planes, b), planes.astype(np.float64) @ b.astype(np.float64).T)


def test_products_of_tensors_with_gaps(tmp_path: Path) -> None:
    statements = """
        A_shared, B_shared = T.alloc_shared((64, 32), "float16"), T.alloc_shared((64, 32), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(N, 32), num_stages=2):
            T.copy(A[0, k * 32], A_shared)
            T.copy(B[0, k * 32], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C)
    """
    params = (
        'A: T.StridedTensor((64, N), (S, 1), "float16"), B: T.StridedTensor((64, N), (R, 1), "float16"), '
        'C: T.Tensor((64, 64), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, head='N, S, R = T.dynamic("N, S, R")', target="cuda:sm_90a")
    a, b = (RNG.integers(-4, 5, (64, 128)).astype(np.float16) for _ in range(2))
    for columns in (128, 72, 37):
        left, right = a[:, :columns], b[:, 128 - columns :] if columns == 72 else b[:, :columns]
        expected = left.astype(np.float64) @ right.astype(np.float64).T
        np.testing.assert_array_equal(kernel(left, right), expected)


def test_elements_past_two_thousand_million(tmp_path: Path) -> None:
    statements = """
        row = I[bx]
        for j in T.Parallel(4):
            Y[bx, j] = X[row, j]
    """
    params = 'X: T.StridedTensor((3, 4), (S, 1), "int8"), I: T.Tensor((3,), "int64"), Y: T.Tensor((3, 4), "int8")'
    kernel = load_body(tmp_path, statements, params, grid="3", head='S = T.dynamic("S")', threads=32, check=False)
    stride = 1_500_000_000
    memory = np.zeros(2 * stride + 4, np.int8)  # pages that nobody touches take no memory
    rows = np.lib.stride_tricks.as_strided(memory, (3, 4), (stride, 1))
    for row in range(3):
        rows[row] = np.arange(4) + 10 * row
    np.testing.assert_array_equal(kernel(rows, np.array([2, 0, 1], np.int64)), rows[[2, 0, 1]])
