"""Tensors shown in other shapes, and the patches of a convolution."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body

RNG = np.random.default_rng(0)

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


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("stride", "dilation", "pad"), [(1, 1, 1), (2, 1, 0), (1, 2, 2)])
def test_convolution(stride: int, dilation: int, pad: int, tmp_path: Path) -> None:
    path = tmp_path / "convolution.py"
    path.write_text(CONVOLUTION, encoding="utf-8")
    kernel = tile2cu.load(path, device="cpu", check=True, S=stride, D=dilation, P=pad, K=3)
    rng = np.random.default_rng(0)
    data = rng.integers(-3, 4, (2, 9, 7, 24)).astype(np.float16)
    weights = rng.integers(-3, 4, (3, 3, 24, 40)).astype(np.float16)
    np.testing.assert_array_equal(kernel(data, weights), reference(data, weights, stride, dilation, pad))


def test_tensors_in_another_shape_and_type(tmp_path: Path) -> None:
    statements = """
        X_rows = T.reshape(X, [12, 20])
        X_bits = T.view(X, [480], dtype="uint16")
        L = T.alloc_fragment((8, 20), "float32")
        T.copy(X_rows[bx * 8, 0], L)
        T.copy(L, T.view(Y, (12, 20))[bx * 8, 0])
        for i in T.Parallel(240):
            if bx == 0:
                B[i] = X_bits[2 * i + 1]
    """
    params = 'X: T.Tensor((240,), "float32"), B: T.Tensor((240,), "uint16"), Y: T.Tensor((240,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="2")
    x = RNG.standard_normal(240).astype(np.float32)
    bits = np.zeros(240, np.uint16)
    np.testing.assert_array_equal(kernel(x, bits), x)
    np.testing.assert_array_equal(bits, x.view(np.uint16)[1::2])


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("shape", "to"), [((120,), (8, 15)), ((4, 6, 8), (24, 8))])
def test_shared_tiles_in_another_shape(shape: tuple[int, ...], to: tuple[int, ...], tmp_path: Path) -> None:
    statements = f"""
        S = T.alloc_shared({shape}, "float32")
        T.copy(X, S)
        S_view = T.reshape(S, {to})
        T.copy(S_view, Y)
    """
    params = f'X: T.Tensor({shape}, "float32"), Y: T.Tensor({to}, "float32")'
    x = RNG.standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), x.reshape(to))


@pytest.mark.parametrize(("from_", "to", "columns"), [("float32", "uint16", 48), ("float16", "float32", 12)])
def test_shared_tiles_as_another_type(from_: str, to: str, columns: int, tmp_path: Path) -> None:
    statements = f"""
        S = T.alloc_shared((8, 24), {from_!r})
        S_bits = T.view(S, (8, {columns}), {to!r})
        T.copy(X[bx * 8, 0], S)
        for i, j in T.Parallel(8, {columns}):
            if bx * 8 + i < 13:
                Y[bx * 8 + i, j] = S_bits[7 - i, j]
    """
    params = f"X: T.Tensor((13, 24), {from_!r}), Y: T.Tensor((13, {columns}), {to!r})"
    x = RNG.integers(-99, 99, (13, 24)).astype(from_)
    padded = np.concatenate([x, np.zeros((3, 24), from_)]).view(to).reshape(2, 8, columns)[:, ::-1]
    kernel = load_body(tmp_path, statements, params, grid="2")
    np.testing.assert_array_equal(kernel(x), padded.reshape(16, columns)[:13])


def test_an_operand_that_is_seen_in_other_rows_and_loaded_ahead(tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((32, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        sums = T.alloc_fragment((128,), "float32")
        A_halves = T.reshape(A_shared, (128, 16))
        T.clear(C_local)
        T.clear(sums)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=3):
            T.copy(A[bx * 64, k * 32], A_shared)
            T.copy(B[k * 32, 0], B_shared)
            T.gemm(A_shared, B_shared, C_local)
            T.reduce_sum(A_halves, sums, dim=1, clear=False)
        T.copy(C_local, C[bx * 64, 0])
        for i in T.Parallel(128):
            if bx * 128 + i < 2 * M:
                S[bx * 128 + i] = sums[i]
    """
    params = (
        'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, 64), "float16"), S: T.Tensor((2 * M,), "float32"), '
        'C: T.Tensor((M, 64), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 64)", arguments="M, K", M=100, K=72)
    a, b = RNG.integers(-4, 5, (100, 72)).astype(np.float16), RNG.integers(-4, 5, (72, 64)).astype(np.float16)
    sums = np.zeros(200, np.float32)
    np.testing.assert_array_equal(kernel(a, b, sums), a.astype(float) @ b.astype(float))
    padded = np.pad(a.astype(float), ((0, 0), (0, 24))).reshape(100, 3, 2, 16)
    np.testing.assert_array_equal(sums, padded.sum((1, 3)).reshape(200))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("heads", "policy"), [(2, "FullCol"), (4, "Square"), (16, "FullRow")])
def test_groups_of_columns_of_a_product(heads: int, policy: str, tmp_path: Path) -> None:
    statements = f"""
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((128, 32), "float16")
        C_local = T.alloc_fragment((64, 128), "float32")
        C_heads = T.reshape(C_local, (64, {heads}, {128 // heads}))
        weights = T.alloc_fragment(({heads}, {128 // heads}), "float32")
        sums = T.alloc_fragment((64, {heads}), "float32")
        T.copy(A[bx * 64, 0], A_shared)
        T.copy(B, B_shared)
        T.copy(W, weights)
        T.gemm(A_shared, B_shared, C_local, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.{policy})
        for i, j, k in T.Parallel(64, {heads}, {128 // heads}):
            C_heads[i, j, k] = T.max(C_heads[i, j, k], 0) * weights[j, k]
        T.reduce_sum(C_heads, sums, dim=-1)
        T.copy(sums, S[bx * 64, 0])
        T.copy(C_local, C[bx * 64, 0])
    """
    params = (
        f'A: T.Tensor((100, 32), "float16"), B: T.Tensor((128, 32), "float16"), '
        f'W: T.Tensor(({heads}, {128 // heads}), "float32"), S: T.Tensor((100, {heads}), "float32"), '
        'C: T.Tensor((100, 128), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, grid="2")
    a, b = RNG.integers(-4, 5, (100, 32)).astype(np.float16), RNG.integers(-4, 5, (128, 32)).astype(np.float16)
    w, sums = RNG.integers(-4, 5, (heads, 128 // heads)).astype(np.float32), np.zeros((100, heads), np.float32)
    product = np.maximum(a.astype(float) @ b.astype(float).T, 0).reshape(100, heads, -1) * w
    np.testing.assert_array_equal(kernel(a, b, w, sums), product.reshape(100, 128))
    np.testing.assert_array_equal(sums, product.sum(2))
    assert "tl::split_columns" in kernel.source


@pytest.mark.nightly
@pytest.mark.parametrize(("groups", "rows", "threads", "policy"), [(1, 64, 256, "FullCol"), (2, 256, 512, "FullCol")])
def test_groups_of_columns_of_several_warpgroups(
    groups: int, rows: int, threads: int, policy: str, tmp_path: Path
) -> None:
    statements = f"""
        A_shared = T.alloc_shared(({rows}, 64), "float16")
        B_shared = T.alloc_shared((128, 64), "float16")
        C_local = T.alloc_fragment(({rows}, 128), "float32")
        C_groups = T.reshape(C_local, ({rows}, {groups}, {128 // groups}))
        sums = T.alloc_fragment(({rows}, {groups}), "float32")
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
            T.copy(A[bx * {rows}, k * 64], A_shared)
            T.copy(B[0, k * 64], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True, policy=T.GemmWarpPolicy.{policy})
        T.reduce_sum(C_groups, sums, dim=-1)
        T.copy(sums, S[bx * {rows}, 0])
    """
    params = f'A: T.Tensor((M, K), "float16"), B: T.Tensor((128, K), "float16"), S: T.Tensor((M, {groups}), "float32")'
    kernel = load_body(
        tmp_path,
        statements,
        params,
        grid=f"T.ceildiv(M, {rows})",
        arguments="M, K",
        threads=threads,
        target="cuda:sm_90a",
    )
    a, b = RNG.integers(-4, 5, (300, 136)).astype(np.float16), RNG.integers(-4, 5, (128, 136)).astype(np.float16)
    sums = (a.astype(float) @ b.astype(float).T).reshape(300, groups, -1).sum(2)
    assert "tl::WgmmaAccumulator" in kernel.source and "tl::ReduceWorkspace" in kernel.source
    np.testing.assert_array_equal(kernel(a, b), sums)


def test_fragments_in_another_shape_move_through_shared_memory(tmp_path: Path) -> None:
    statements = """
        L = T.alloc_fragment((240,), "float32")
        rows = T.reshape(L, (12, 20))
        largest = T.alloc_fragment((12,), "float32")
        T.copy(X, L)
        for turn in T.serial(3):
            T.reduce_max(rows, largest, dim=1)
            for i, j in T.Parallel(12, 20):
                rows[i, j] = rows[i, j] - largest[i] * 2.0
            if turn < 2:
                for i in T.Parallel(240):
                    L[i] = L[i] + i
        T.copy(L, Y)
    """
    params = 'X: T.Tensor((240,), "float32"), Y: T.Tensor((240,), "float32")'
    x = RNG.integers(-50, 50, 240).astype(np.float32)
    expected = x.reshape(12, 20).astype(float)
    for turn in range(3):
        expected = expected - expected.max(1, keepdims=True) * 2
        expected = expected + (np.arange(240).reshape(12, 20) if turn < 2 else 0)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), expected.reshape(240))


def test_private_arrays_in_another_shape(tmp_path: Path) -> None:
    statements = """
        own = T.alloc_local((6,), "int32")
        pairs = T.reshape(own, (3, 2))
        tx = T.get_thread_binding()
        for i in T.serial(6):
            own[i] = tx * 6 + i
        for i in T.serial(3):
            Y[tx, i] = pairs[i, 0] * pairs[i, 1]
    """
    expected = np.arange(128 * 6).reshape(128, 3, 2).prod(2)
    np.testing.assert_array_equal(load_body(tmp_path, statements, 'Y: T.Tensor((128, 3), "int32")')(), expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("shape", ["8, 1, 64", "1, 8, 64"])
def test_a_view_with_an_extent_of_one(shape: str, tmp_path: Path) -> None:
    """A fragment is only indexed by a loop's own variables: it runs over the dimension of one element, too."""
    rows, cols, _ = shape.split(", ")
    statements = f"""
        L = T.alloc_fragment((8, 64), "float32")
        best = T.alloc_fragment(({rows}, {cols}), "float32")
        T.copy(X, L)
        V = T.reshape(L, ({shape}))
        T.reduce_absmax(V, best, dim=2)
        for i, j in T.Parallel({rows}, {cols}):
            Y[i + j] = best[i, j]
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8,), "float32")')
    x = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), abs(x).max(axis=1))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("shape", [(64, 4, 32, 1), (8, 8, 4, 32)], ids=["one element deep", "four dimensions"])
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_a_product_in_a_shape_of_four_dimensions(shape: tuple[int, ...], target: str, tmp_path: Path) -> None:
    """Dimensions of one element are left out: what is left stays in the product's registers."""
    sums = """
        sums = T.alloc_fragment((64, 4, 1), "float32")
        T.reduce_sum(view, sums, dim=2)
        for i, j, k in T.Parallel(64, 4, 1):
            Z[i, j] = sums[i, j, k]
    """
    statements = f"""
        A_shared, B_shared = T.alloc_shared((64, 32), "float16"), T.alloc_shared((128, 32), "float16")
        C_local = T.alloc_fragment((64, 128), "float32")
        view = T.reshape(C_local, {shape})
        T.copy(A, A_shared)
        T.copy(B, B_shared)
        T.gemm(A_shared, B_shared, C_local, transpose_B=True, clear_accum=True)
        for a, b, c, d in T.Parallel{shape}:
            view[a, b, c, d] = T.max(view[a, b, c, d], 0) * 2
        {sums.strip() if shape[3] == 1 else "Z[0, 0] = 0"}
        T.copy(C_local, Y)
    """
    params = (
        'A: T.Tensor((64, 32), "float16"), B: T.Tensor((128, 32), "float16"), Z: T.Tensor((64, 4), "float32"), '
        'Y: T.Tensor((64, 128), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, target=target)
    a, b = (np.random.default_rng(0).integers(-4, 5, extents).astype(np.float16) for extents in ((64, 32), (128, 32)))
    z = np.zeros((64, 4), np.float32)
    expected = np.maximum(a.astype(np.float64) @ b.T.astype(np.float64), 0) * 2
    np.testing.assert_array_equal(kernel(a, b, z), expected)
    if shape[3] == 1:
        np.testing.assert_array_equal(z, expected.reshape(64, 4, 32).sum(axis=2))
        assert "view_staged" not in kernel.source


@pytest.mark.nightly
@pytest.mark.parametrize("last", [8, 5])
def test_loops_over_four_dimensions(last: int, tmp_path: Path) -> None:
    statements = f"""
        S = T.alloc_shared((3, 6, 4, {last}), "float32")
        L = T.alloc_fragment((3, 6, 4, {last}), "float32")
        for a, b, c, d in T.Parallel(3, 6, 4, {last}):
            S[a, b, c, d] = X[bx * 3 + a, b, c, d] * 2
        T.copy(X[bx * 3, 0, 0, 0], L)
        for a, b, c, d in T.Parallel(3, 6, 4, {last}):
            L[a, b, c, d] += S[a, 5 - b, c, d]
        for a, b, c, d in T.Parallel(3, 6, 4, {last}):
            Y[bx * 3 + a, b, c, d] = L[a, b, c, d]
    """
    params = f'X: T.Tensor((M, 6, 4, {last}), "float32"), Y: T.Tensor((M, 6, 4, {last}), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 3)", arguments="M")
    x = np.random.default_rng(0).integers(-4, 5, (7, 6, 4, last)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x + 2 * x[:, ::-1])


def test_the_total_of_partial_sums_bits_is_not_that_of_their_values(tmp_path: Path) -> None:
    kernel = load_body(
        tmp_path,
        """
        parts = T.alloc_fragment((32, 4), "float32")
        total = T.alloc_fragment((1,), "int32")
        T.clear(parts)
        for i, j in T.Parallel(64, 16):
            parts[i // 2, j % 4] += X[i, j]
        T.reduce_sum(T.view(parts, (128,), "int32"), total, dim=0)
        T.copy(total, Y)
        """,
        'X: T.Tensor((64, 16), "float32"), Y: T.Tensor((1,), "int32")',
    )
    x = RNG.integers(-3, 4, (64, 16)).astype(np.float32)
    parts = x.reshape(32, 2, 4, 4).sum(axis=(1, 2))
    assert kernel(x) == parts.view(np.int32).sum(dtype=np.int32)
