"""Constructs of the language one by one, in kernels of a few lines: emitted, built, run with every check, compared."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body
from tile2cu_runtime import ArgumentError

RNG = np.random.default_rng(0)


def integers(*shape: int, dtype: object = np.float16) -> np.ndarray:
    return RNG.integers(-4, 5, shape).astype(dtype)


GEMM = """
    A_shared = T.alloc_shared({a}, {dtype!r})
    B_shared = T.alloc_shared({b}, {dtype!r})
    C_local = T.alloc_fragment((M, N), {accumulator!r})
    T.copy(A, A_shared)
    T.copy(B, B_shared)
    T.clear(C_local)
    T.gemm(A_shared, B_shared, C_local, transpose_A={ta}, transpose_B={tb}, policy=T.GemmWarpPolicy.{policy})
    T.copy(C_local, C)
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("policy", ["Square", "FullRow", "FullCol"])
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("shape", [(64, 96, 80)])
def test_gemm(policy: str, ta: bool, tb: bool, shape: tuple[int, int, int], tmp_path: Path) -> None:
    m, n, k = shape
    a_shape, b_shape = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    statements = GEMM.format(a=a_shape, b=b_shape, dtype="float16", accumulator="float32", ta=ta, tb=tb, policy=policy)
    params = f'A: T.Tensor({a_shape}, "float16"), B: T.Tensor({b_shape}, "float16"), C: T.Tensor((M, N), "float32")'
    kernel = load_body(tmp_path, statements, params, arguments="M, N", M=m, N=n)
    a, b = integers(*a_shape), integers(*b_shape)
    expected = (a.T if ta else a).astype(np.float64) @ (b.T if tb else b).astype(np.float64)
    np.testing.assert_array_equal(kernel(a, b), expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("dtype", "accumulator", "numpy"),
    [
        ("bfloat16", "float32", ml_dtypes.bfloat16),
        ("float16", "float16", np.float16),
        ("int8", "int32", np.int8),
        ("float32", "float32", np.float32),
    ],
)
def test_gemm_of_other_types(dtype: str, accumulator: str, numpy: object, tmp_path: Path) -> None:
    statements = GEMM.format(
        a=(64, 64), b=(32, 64), dtype=dtype, accumulator=accumulator, ta=False, tb=True, policy="Square"
    )
    params = f"A: T.Tensor((64, 64), {dtype!r}), B: T.Tensor((32, 64), {dtype!r}), C: T.Tensor((M, N), {accumulator!r})"
    kernel = load_body(tmp_path, statements, params, arguments="M, N", M=64, N=32)
    a, b = integers(64, 64, dtype=numpy), integers(32, 64, dtype=numpy)
    np.testing.assert_array_equal(kernel(a, b).astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_89", "cuda:sm_90a"])
@pytest.mark.parametrize("numpy", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_gemm_of_8_bit_floats(numpy: type, target: str, tmp_path: Path) -> None:
    dtype = {"float8_e4m3fn": "float8_e4m3", "float8_e5m2": "float8_e5m2"}[np.dtype(numpy).name]
    statements = GEMM.format(
        a=(64, 128), b=(32, 128), dtype=dtype, accumulator="float32", ta=False, tb=True, policy="Square"
    )
    params = f'A: T.Tensor((64, 128), {dtype!r}), B: T.Tensor((32, 128), {dtype!r}), C: T.Tensor((M, N), "float32")'
    kernel = load_body(tmp_path, statements, params, arguments="M, N", target=target, M=64, N=32)
    a, b = integers(64, 128, dtype=numpy), integers(32, 128, dtype=numpy)
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64).T)


def test_products_of_parts_of_shared_tiles(tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((64, 128), "float16")
        B_shared = T.alloc_shared((128, 64), "float16")
        C_local = T.alloc_fragment((32, 64), "float32")
        T.copy(A[0, 0], A_shared[:, 0:64])
        T.copy(A[0, 64], A_shared[:, 64:128])
        T.copy(B, B_shared)
        T.clear(C_local)
        T.gemm(A_shared[32:64, 0:64], B_shared[64:128, :], C_local)
        T.gemm(A_shared[0:32, 64:128], B_shared[0:64, :], C_local)
        T.copy(C_local, C)
    """
    params = 'A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((32, 64), "float32")'
    kernel = load_body(tmp_path, statements, params)
    a, b = integers(64, 128), integers(128, 64)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    expected = wide_a[32:, :64] @ wide_b[64:] + wide_a[:32, 64:] @ wide_b[:64]
    np.testing.assert_array_equal(kernel(a, b), expected)


def test_an_epilogue_through_shared_memory_gets_its_barriers(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((64, 64), "float32")
        X_local = T.alloc_fragment((64, 64), "float32")
        for k in T.serial(4):
            T.copy(X[k * 64, 0], S)
            T.copy(S, X_local)
            for i, j in T.Parallel(64, 64):
                X_local[i, j] = X_local[i, j] + S[j, i]
            T.copy(X_local, S)
            T.copy(S, Y[k * 64, 0])
    """
    params = 'X: T.Tensor((256, 64), "float32"), Y: T.Tensor((256, 64), "float32")'
    kernel = load_body(tmp_path, statements, params)
    assert kernel.source.count("tl::sync_threads();") == 4
    x = RNG.standard_normal((256, 64)).astype(np.float32)
    blocks = x.reshape(4, 64, 64)
    np.testing.assert_array_equal(kernel(x), (blocks + blocks.transpose(0, 2, 1)).reshape(256, 64))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("stages", [0, 1, 2, 3, 4])
def test_pipelines_of_any_depth_and_length(stages: int, tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((32, 64), "float32")
        L = T.alloc_fragment((32, 64), "float32")
        total = T.alloc_fragment((32, 64), "float32")
        T.clear(total)
        for k in T.Pipelined(T.ceildiv(R, 32), num_stages=stages):
            T.copy(X[k * 32, 0], S)
            T.copy(S, L)
            for i, j in T.Parallel(32, 64):
                total[i, j] += L[i, j]
        T.copy(total, Y)
    """
    params = 'X: T.Tensor((R, 64), "float32"), Y: T.Tensor((32, 64), "float32")'
    kernel = load_body(tmp_path, statements, params, arguments="R, stages", stages=stages)
    for trips in (0, 1, 2, 5):
        x = integers(32 * trips, 64, dtype=np.float32)
        np.testing.assert_array_equal(kernel(x), x.reshape(trips, 32, 64).sum(axis=0))


def test_two_pipelines_one_after_the_other(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((32, 64), "float32")
        R = T.alloc_shared((32, 64), "float32")
        total = T.alloc_fragment((32, 64), "float32")
        load_2 = T.alloc_fragment((32, 64), "float32")
        T.clear(total)
        T.clear(load_2)
        for k in T.Pipelined(4, num_stages=3):
            T.copy(X[k * 32, 0], S)
            for i, j in T.Parallel(32, 64):
                total[i, j] += S[i, j]
        for k in T.Pipelined(4, num_stages=2):
            T.copy(X[k * 32, 0], R)
            for i, j in T.Parallel(32, 64):
                load_2[i, j] += R[i, j] * total[i, j]
        T.copy(load_2, Y)
    """
    params = 'X: T.Tensor((128, 64), "float32"), Y: T.Tensor((32, 64), "float32")'
    kernel = load_body(tmp_path, statements, params)
    x = integers(128, 64, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), x.reshape(4, 32, 64).sum(axis=0) ** 2)


def test_a_pipelined_loop_may_start_anywhere_and_run_twice(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((32, 64), "float32")
        total = T.alloc_fragment((32, 64), "float32")
        T.clear(total)
        for turn in T.serial(2):
            for k in T.Pipelined(1, 4, num_stages=2):
                T.copy(X[k * 32, 0], S)
                for i, j in T.Parallel(32, 64):
                    total[i, j] += S[i, j]
        T.copy(total, Y)
    """
    params = 'X: T.Tensor((128, 64), "float32"), Y: T.Tensor((32, 64), "float32")'
    x = integers(128, 64, dtype=np.float32)
    expected = 2 * x[32:].reshape(3, 32, 64).sum(axis=0)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), expected)


def test_a_tile_that_is_read_before_it_is_loaded_is_the_one_of_the_turn_before(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((32, 64), "float32")
        R = T.alloc_shared((32, 64), "float32")
        total = T.alloc_fragment((32, 64), "float32")
        T.clear(total)
        T.clear(S)
        for k in T.Pipelined(4, num_stages=3):
            for i, j in T.Parallel(32, 64):
                total[i, j] += S[i, j] * (k + 1)
            T.copy(X[k * 32, 0], S)
            T.copy(X[k * 32, 0], R)
            T.copy(X[(3 - k) * 32, 0], R)
            for i, j in T.Parallel(32, 64):
                total[i, j] += R[i, j] * 100
        T.copy(total, Y)
    """
    params = 'X: T.Tensor((128, 64), "float32"), Y: T.Tensor((32, 64), "float32")'
    x = integers(128, 64, dtype=np.float32).reshape(4, 32, 64)
    expected = sum((k + 1) * x[k - 1] for k in range(1, 4)) + 100 * x.sum(axis=0)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x.reshape(128, 64)), expected)


REDUCTIONS = [(kind, dim, (33, 100)) for kind in ("sum", "max", "min", "absmax", "abssum") for dim in (0, 1)]
REDUCTIONS += [("sum", 1, (4, 256)), ("max", 1, (1, 2048)), ("max", 0, (1, 2048)), ("sum", 0, (64, 32))]


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize(("kind", "dim", "shape"), REDUCTIONS)
def test_reductions(kind: str, dim: int, shape: tuple[int, int], tmp_path: Path) -> None:
    kept = shape[1 - dim]
    statements = f"""
        L = T.alloc_fragment({shape}, "float32")
        r = T.alloc_fragment(({kept},), "float32")
        T.copy(X, L)
        T.reduce_{kind}(L, r, dim={dim})
        T.copy(r, Y)
    """
    params = f'X: T.Tensor({shape}, "float32"), Y: T.Tensor(({kept},), "float32")'
    x = integers(*shape, dtype=np.float32)
    numpy = {"sum": np.sum, "max": np.max, "min": np.min}.get(kind)
    expected = numpy(x, axis=dim) if numpy else (np.max if kind == "absmax" else np.sum)(np.abs(x), axis=dim)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), expected)


def test_a_shared_tile_is_reduced_into_a_fragment_and_into_shared_memory(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((64, 96), "float32")
        rows = T.alloc_fragment((64,), "float32")
        cols = T.alloc_shared((96,), "float32")
        T.copy(X, S)
        T.reduce_max(S, rows, dim=1)
        T.reduce_max(S, cols, dim=0)
        for i, j in T.Parallel(64, 96):
            Y[i, j] = rows[i] - cols[j]
    """
    params = 'X: T.Tensor((64, 96), "float32"), Y: T.Tensor((64, 96), "float32")'
    kernel = load_body(tmp_path, statements, params)
    x = integers(64, 96, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), x.max(axis=1)[:, None] - x.max(axis=0)[None, :])


def test_a_product_of_square_warps_is_reduced_over_several_warps(tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((32, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        row_max = T.alloc_fragment((64,), "float32")
        T.copy(A, A_shared)
        T.copy(B, B_shared)
        T.gemm(A_shared, B_shared, C_local, clear_accum=True)
        T.fill(row_max, 5)
        T.reduce_max(C_local, row_max, dim=1, clear=False)
        for i, j in T.Parallel(64, 64):
            C_local[i, j] = C_local[i, j] - row_max[i]
        T.copy(C_local, C)
    """
    params = 'A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"), C: T.Tensor((64, 64), "float32")'
    kernel = load_body(tmp_path, statements, params)
    a, b = integers(64, 32), integers(32, 64)
    c = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(kernel(a, b), c - np.maximum(c.max(axis=1, keepdims=True), 5))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.int8, np.uint8])
def test_elementwise_of_every_type(dtype: object, tmp_path: Path) -> None:
    name = np.dtype(dtype).name
    statements = """
        for i, j in T.Parallel(32, 100):
            Y[bx * 32 + i, j] = X[bx * 32 + i, j] + X[bx * 32 + i, j] * 2
    """
    params = f"X: T.Tensor((M, 100), {name!r}), Y: T.Tensor((M, 100), {name!r})"
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 32)", arguments="M")
    x = (
        integers(70, 100, dtype=np.int8).astype(dtype)
        if dtype is not np.uint8
        else RNG.integers(0, 9, (70, 100), dtype)
    )
    np.testing.assert_array_equal(kernel(x).astype(np.float64), 3 * x.astype(np.float64))


def test_broadcast_bias_and_a_mixed_type_store(tmp_path: Path) -> None:
    statements = """
        L = T.alloc_fragment((32, 64), "float32")
        T.copy(X[bx * 32, 0], L)
        for i, j in T.Parallel(32, 64):
            L[i, j] = T.max(L[i, j] + bias[j], 0) * scale[bx * 32 + i]
        T.copy(L, Y[bx * 32, 0])
    """
    params = (
        'X: T.Tensor((M, 64), "float16"), bias: T.Tensor((64,), "float16"), scale: T.Tensor((M,), "float32"), '
        'Y: T.Tensor((M, 64), "float16")'
    )
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 32)", arguments="M")
    x, bias, scale = integers(50, 64), integers(64), integers(50, dtype=np.float32)
    expected = np.maximum(x.astype(np.float64) + bias, 0) * scale[:, None]
    np.testing.assert_array_equal(kernel(x, bias, scale).astype(np.float64), expected)


def test_a_value_for_a_whole_row_of_a_shared_tile(tmp_path: Path) -> None:
    """All vectors of the tile are computed before one is stored; here a vector is one value, also of another type."""
    statements = """
        rows = T.alloc_shared((16,), "float32")
        wide = T.alloc_shared((16, 256), "float32")
        narrow = T.alloc_shared((16, 256), "float16")
        T.copy(X, rows)
        for i, j in T.Parallel(16, 256):
            wide[i, j] = rows[i]
        for i, j in T.Parallel(16, 256):
            narrow[i, j] = rows[i] * 2
        T.copy(wide, Y)
        T.copy(narrow, Z)
    """
    params = 'X: T.Tensor((16,), "float32"), Y: T.Tensor((16, 256), "float32"), Z: T.Tensor((16, 256), "float16")'
    kernel, x = load_body(tmp_path, statements, params), RNG.standard_normal(16).astype(np.float32)
    y, z = np.empty((16, 256), np.float32), np.empty((16, 256), np.float16)
    kernel(x, y, z)
    assert "tl::parallel_into<" in kernel.source
    np.testing.assert_array_equal(y, np.repeat(x[:, None], 256, axis=1))
    np.testing.assert_array_equal(z, np.repeat((x * 2).astype(np.float16)[:, None], 256, axis=1))


def test_device_branches_and_mutable_scalars(tmp_path: Path) -> None:
    statements = """
        L = T.alloc_fragment((128,), "float32")
        count = T.alloc_var("int32", init=0)
        T.copy(X[bx * 128], L)
        if bx % 2 == 0:
            count = 10
            for i in T.Parallel(128):
                L[i] = L[i] * 2.0
        else:
            for k in T.serial(3):
                count += k
        for i in T.Parallel(128):
            L[i] = L[i] + T.cast(count, "float32")
        T.copy(L, Y[bx * 128])
    """
    params = 'X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(N, 128)", arguments="N")
    x = integers(300, dtype=np.float32)
    even = np.arange(300) // 128 % 2 == 0
    np.testing.assert_array_equal(kernel(x), np.where(even, 2 * x + 10, x + 3))


def test_blocks_of_a_product_are_skipped_by_a_mask(tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((32, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        mask_local = T.alloc_fragment((6,), "int32")
        T.copy(Mask[bx, :], mask_local)
        T.clear(C_local)
        for k in T.Pipelined(6, num_stages=2):
            if mask_local[k] != 0:
                T.copy(A[bx * 64, k * 32], A_shared)
                T.copy(B[k * 32, 0], B_shared)
                T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[bx * 64, 0])
    """
    params = (
        'A: T.Tensor((256, 192), "float16"), B: T.Tensor((192, 64), "float16"), '
        'Mask: T.Tensor((4, 6), "int32"), C: T.Tensor((256, 64), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, grid="4")
    a, b, mask = integers(256, 192), integers(192, 64), RNG.integers(0, 2, (4, 6)).astype(np.int32)
    wide = np.kron(mask, np.ones((64, 32)))
    np.testing.assert_array_equal(kernel(a, b, mask), (a.astype(np.float64) * wide) @ b.astype(np.float64))


def test_a_row_value_is_stored_once_though_many_threads_hold_it(tmp_path: Path) -> None:
    statements = """
        L = T.alloc_fragment((4, 256), "float32")
        row_sum = T.alloc_fragment((4,), "float32")
        T.copy(X[bx * 4, 0], L)
        T.reduce_sum(L, row_sum, dim=1)
        for i in T.Parallel(4):
            Y[bx * 4 + i] = row_sum[i] * 0.5
    """
    params = 'X: T.Tensor((M, 256), "float32"), Y: T.Tensor((M,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 4)", arguments="M")
    assert "tl::parallel_once(" in kernel.source
    x = integers(10, 256, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), x.sum(axis=1) * 0.5)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("order", ["row", "col"])
def test_swizzled_block_order_changes_no_result(order: str, tmp_path: Path) -> None:
    statements = f"""
        T.use_swizzle(panel_size=3, order={order!r})
        for i, j in T.Parallel(16, 16):
            Y[by * 16 + i, bx * 16 + j] = X[by * 16 + i, bx * 16 + j] + 1.0
    """
    params = 'X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")'
    grid = "T.ceildiv(N, 16), T.ceildiv(M, 16)"
    kernel = load_body(tmp_path, statements, params, grid=grid, blocks="(bx, by)", arguments="M, N")
    x = integers(130, 90, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), x + 1)


def test_python_division_and_remainder(tmp_path: Path) -> None:
    statements = """
        for i in T.Parallel(128):
            Y[i] = (X[i] // 3) * 100 + X[i] % 3
    """
    params = 'X: T.Tensor((128,), "int32"), Y: T.Tensor((128,), "int32")'
    x = np.arange(-64, 64, dtype=np.int32)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), (x // 3) * 100 + x % 3)


def test_a_size_that_no_shape_gives_is_passed_by_name(tmp_path: Path) -> None:
    statements = """
        if T.get_thread_binding() == 0:
            for turn in T.serial(turns):
                B[bx] = B[bx] + A[bx]
    """
    params = 'A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="blocks", arguments="N, blocks, turns")
    a, b = integers(8, dtype=np.float32), np.zeros(8, np.float32)
    kernel(a, b, blocks=5, turns=3)
    np.testing.assert_array_equal(b, np.where(np.arange(8) < 5, 3 * a, 0))
    with pytest.raises(ArgumentError, match="the size `blocks` does not follow from the shape of any given tensor"):
        kernel(a, b, turns=3)


def test_a_pipelined_tile_that_is_read_after_its_loop_holds_the_last_turns(tmp_path: Path) -> None:
    """A tile in several slots has no place behind its loop: it is loaded turn by turn, and the others run ahead."""
    statements = """
        S = T.alloc_shared((32, 32), "float16")
        R = T.alloc_shared((32, 32), "float16")
        F = T.alloc_fragment((32, 32), "float32")
        T.clear(F)
        for k in T.Pipelined(4, num_stages=3):
            T.copy(A[0, k * 32], S)
            T.copy(A[32, k * 32], R)
            for i, j in T.Parallel(32, 32):
                F[i, j] += S[i, j] + R[i, j]
        for i, j in T.Parallel(32, 32):
            C[i, j] = F[i, j] * S[i, j]
    """
    kernel = load_body(tmp_path, statements, 'A: T.Tensor((64, 128), "float16"), C: T.Tensor((32, 32), "float32")')
    a = integers(64, 128)
    wide = a.astype(np.float32)
    sums = sum(wide[:32, k * 32 : k * 32 + 32] + wide[32:, k * 32 : k * 32 + 32] for k in range(4))
    np.testing.assert_array_equal(kernel(a), sums * wide[:32, 96:])


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("target", "factor"), [("cuda:sm_80", 2), ("cuda:sm_90a", 3), ("hip:gfx950", 5)])
def test_what_a_file_asks_of_its_target(target: str, factor: int, tmp_path: Path) -> None:
    """The file names another chip; text and answer are for the one that is asked for."""
    head = """
from tilelang import tvm
from tilelang.rocm.target import target_is_gfx950
from tilelang.utils.target import target_is_hopper

def factor(target):
    try:
        return 5 if target_is_gfx950(target) else 3 if target_is_hopper(target) else 2
    except AttributeError:
        return 7
"""
    statements = """
        for i, j in T.Parallel(16, 24):
            B[i, j] = A[i, j] * factor(tvm.target.Target("hip -mcpu=gfx950"))
    """
    params = 'A: T.Tensor((13, 20), "float32"), B: T.Tensor((13, 20), "float32")'
    kernel = load_body(tmp_path, statements, params, head=head, target=target)
    a = integers(13, 20, dtype=np.float32)
    np.testing.assert_array_equal(kernel(a), a * factor)


def test_a_loop_may_name_a_fragments_dimensions_in_any_order(tmp_path: Path) -> None:
    """What a product leaves in registers is met by loops over columns and rows, all of it and a part."""
    statements = """
        A_shared = T.alloc_shared((64, 32), "float16")
        scale = T.alloc_fragment((48,), "float32")
        C_local = T.alloc_fragment((64, 48), "float32")
        T.copy(A[0, 0], A_shared)
        T.copy(S, scale)
        T.gemm(A_shared, A_shared[0:48, :], C_local, transpose_B=True, clear_accum=True)
        for j, i in T.Parallel(48, 64):
            C_local[i, j] = T.max(C_local[i, j], 0) * scale[j]
        for j, i in T.Parallel(40, 50):
            C_local[i, j] += 1
        for j, i in T.Parallel(48, 64):
            if i < 50 and j < 40:
                C[j, i] = C_local[i, j]
    """
    params = 'A: T.Tensor((50, 30), "float16"), S: T.Tensor((48,), "float32"), C: T.Tensor((40, 50), "float32")'
    kernel = load_body(tmp_path, statements, params)
    a, s = integers(50, 30), integers(48, dtype=np.float32)
    product = np.maximum(a.astype(float) @ a[:48].astype(float).T, 0) * s
    np.testing.assert_array_equal(kernel(a, s), product[:50, :40].T + 1)
    assert "through-shared" not in kernel.source


PYTHON = """
import tilelang
import tilelang.language as T


class Tile:
    ROWS, COLUMNS = 64, 32


CONFIGS = {"small": dict(rows=Tile.ROWS // 2), "large": {"rows": Tile.ROWS}}
scaled = lambda x, by=2: x * by


def outer(factor):
    def middle(which):
        config = CONFIGS[which]

        @tilelang.jit(out_idx=[-1], target="cuda")
        def inner(N, op="max", dtype="float16"):
            reduce, wide = getattr(T, "reduce_" + op), getattr(T, "float32")
            rows = config["rows"] if getattr(Tile, "SMALL", True) else 1

            @T.prim_func
            def main(X: T.Tensor((N, Tile.COLUMNS), dtype), Y: T.Tensor((N,), wide)):
                with T.Kernel(T.ceildiv(N, rows), threads=128) as bx:
                    values, result = T.alloc_fragment((rows, Tile.COLUMNS), wide), T.alloc_fragment((rows,), wide)
                    T.copy(X[bx * rows, 0], values)
                    for i, j in T.Parallel(rows, Tile.COLUMNS):
                        values[i, j] = scaled(values[i, j], by=factor)
                    reduce(values, result, dim=1)
                    T.copy(result, Y[bx * rows])

            return main

        return inner

    return middle


kernel = outer(3)("large")
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("op", ["max", "sum"])
def test_python_around_a_kernel(op: str, tmp_path: Path) -> None:
    path = tmp_path / "nested.py"
    path.write_text(PYTHON, encoding="utf-8")
    kernel = tile2cu.load(path, device="cpu", check=True, op=op)
    x = integers(100, 32)
    np.testing.assert_array_equal(kernel(x), getattr(3 * x.astype(np.float32), op)(axis=1))
