"""Names that other dialects have for what the language does, and flags of a block."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body

RNG = np.random.default_rng(0)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("where", ["mask[by, bx, k, :]", "flags[k, :]"], ids=["of a tensor", "of a shared tile"])
def test_products_of_blocks_that_have_a_flag(where: str, tmp_path: Path) -> None:
    statements = f"""
        A_shared = T.alloc_shared((32, 32), "float16")
        B_shared = T.alloc_shared((32, 32), "float16")
        C_local = T.alloc_fragment((32, 32), "float32")
        flags = T.alloc_shared((T.ceildiv(K, 32), 3), "bool")
        T.copy(mask[by, bx, :, :], flags)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
            if T.any_of({where}):
                T.copy(A[by * 32, k * 32], A_shared)
                T.copy(B[k * 32, bx * 32], B_shared)
                T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * 32, bx * 32])
    """
    params = (
        'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), '
        'mask: T.Tensor((T.ceildiv(M, 32), T.ceildiv(N, 32), T.ceildiv(K, 32), 3), "bool"), '
        'C: T.Tensor((M, N), "float32")'
    )
    kernel = load_body(
        tmp_path,
        statements,
        params,
        grid="T.ceildiv(N, 32), T.ceildiv(M, 32)",
        blocks="(bx, by)",
        arguments="M, N, K",
        K=104,
    )
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((40, 104), (104, 72)))
    mask = RNG.integers(0, 4, (2, 3, 4, 3)) == 0
    expected = np.zeros((40, 72))
    for i, j, k in np.ndindex(2, 3, 4):
        rows, cols, part = (slice(32 * at, 32 * at + 32) for at in (i, j, k))
        if mask[i, j, k].any():
            expected[rows, cols] += a[rows, part].astype(np.float64) @ b[part, cols].astype(np.float64)
    np.testing.assert_array_equal(kernel(a, b, mask), expected)


HANDLES = """
import tilelang.language as T

@T.prim_func
def scaled(a: T.handle, alpha: T.float32, b: T.handle):
    m = T.dynamic("m")
    A = T.match_buffer(a, (m, 64), T.float32)
    B = T.match_buffer(b, (m, 64), T.float32)
    with T.Kernel(T.ceildiv(m, 16), threads=64) as bx:
        T.func_attr({"note": 1})
        S = T.sblock_alloc_buffer((16, 64), "float32", scope="shared")
        L = T.decl_buffer((16, 64), "float32", scope="local.fragment")
        T.async_copy(A[bx * 16, 0], S)
        T.ptx_wait_group(0)
        T.tvm_storage_sync("shared")
        if T.all_of(S[0, 0:3]):
            for i, j in T.Parallel(16, 64):
                L[i, j] = S[i, 63 - j] * alpha + T.fast_rcp(2.0 + bx)
        else:
            T.clear(L)
        T.copy(L, B[bx * 16, 0])
        T.tma_store_arrive()
        T.tma_store_wait(0)
"""


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_names_of_other_dialects(target: str, tmp_path: Path) -> None:
    path = tmp_path / "scaled.py"
    path.write_text(HANDLES, encoding="utf-8")
    kernel = tile2cu.load(path, device="cpu", target=target, check=True)
    a, b = RNG.integers(1, 9, (40, 64)).astype(np.float32), np.zeros((40, 64), np.float32)
    a[16, 1] = 0
    kernel(a, 0.5, b)
    expected = a[:, ::-1] * np.float32(0.5) + np.float32(1) / np.float32(2 + np.arange(40) // 16)[:, None]
    expected[16:32] = 0
    np.testing.assert_allclose(b, expected, rtol=1e-6)
    assert "cp_async_wait" not in kernel.source.partition("__global__")[2]


SMALL_SCALARS = """
import tilelang.language as T

@T.prim_func
def scaled(X: T.Tensor((64,), "float32"), alpha: T.float16, beta: T.bfloat16, Y: T.Tensor((64,), "float16")):
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(64):
            Y[i] = T.cast(X[i], "float16") * alpha + T.cast(beta, "float16")
"""


def test_scalars_of_types_that_c_has_none_of(tmp_path: Path) -> None:
    """They are passed as float, and the kernel rounds them."""
    path = tmp_path / "scaled.py"
    path.write_text(SMALL_SCALARS, encoding="utf-8")
    kernel = tile2cu.load(path, device="cpu", check=True)
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float16)
    kernel(x, 1.0002, 1.001, y)
    np.testing.assert_array_equal(y, x + 1)
    assert "float alpha, float beta" in kernel.source


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_what_is_read_outside_of_a_tensor(target: str, tmp_path: Path) -> None:
    """By copies, from tensor to tensor too, and by elements before the tensor and behind it."""
    statements = """
        S = T.alloc_shared((16, 32), "float16")
        R = T.alloc_shared((16, 32), "float32")
        T.annotate_safe_value({X: -3})
        with T.sblock("scope"):
            T.copy(X[by * 16, bx * 32], S)
            for i, j in T.Parallel(16, 32):
                R[i, j] = X[by * 16 + i - 5, bx * 32 + j]
        T.copy(X[by * 16 : by * 16 + 16, bx * 32 : bx * 32 + 32], Z[by * 16 : by * 16 + 16, bx * 32 : bx * 32 + 32])
        T.copy(S, W[by * 16, bx * 32])
        T.copy(R, Y[by * 16, bx * 32])
    """
    params = (
        'X: T.Tensor((M, N), "float32"), Z: T.Tensor((48, 64), "float32"), W: T.Tensor((48, 64), "float16"), '
        'Y: T.Tensor((48, 64), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, grid="2, 3", blocks="(bx, by)", arguments="M, N", target=target)
    x = RNG.integers(-9, 10, (37, 50)).astype(np.float32)
    z, w = np.zeros((48, 64), np.float32), np.zeros((48, 64), np.float16)
    expected = np.full((48, 64), -3.0)
    expected[:37, :50] = x
    shifted = np.full((48, 64), -3.0)
    shifted[5:42, :50] = x
    np.testing.assert_array_equal(kernel(x, z, w), shifted)
    np.testing.assert_array_equal(z, expected)
    np.testing.assert_array_equal(w, expected)


def test_branches_as_blocks_and_a_tensor_with_a_name_of_c(tmp_path: Path) -> None:
    """T.If and its kin, T.And, NaN as a number, and a parameter whose name is a keyword of C++."""
    statements = """
        L = T.alloc_fragment((4, 32), "float32")
        turns = T.alloc_var("int32", 0)
        with T.While(turns < by):
            turns += 1
        with T.If(by > 0):
            with T.Then():
                T.copy(do[by * 4, 0], L)
            with T.Else():
                T.fill(L, 7.0)
        for i, j in T.Parallel(4, 32):
            with T.If(T.And(by * 4 + i < M, T.Or(j < 20, T.Not(L[i, j] < 3)))), T.Then():
                Y[by * 4 + i, j] = T.if_then_else(L[i, j] == 0, T.cast(float("nan"), "float32"), L[i, j] * turns)
    """
    params = 'do: T.Tensor((M, 32), "float32"), Y: T.Tensor((M, 32), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="1, T.ceildiv(M, 4)", blocks="(bx, by)", arguments="M")
    x, y = RNG.integers(-4, 5, (10, 32)).astype(np.float32), np.full((10, 32), 99, np.float32)
    rows, columns = np.indices(x.shape)
    value = np.where(rows < 4, 7, x)
    expected = np.where(value == 0, np.nan, value * (rows // 4))
    kernel(x, y)
    np.testing.assert_array_equal(y, np.where((columns < 20) | (value >= 3), expected, 99))


def test_jumps_by_their_own_names(tmp_path: Path) -> None:
    """T.loop_break, and a hint about registers."""
    statements = """
        L = T.alloc_fragment((16, 32), "float32")
        T.clear(L)
        for k in T.serial(8):
            if k == stop[bx]:
                T.loop_break()
            for i, j in T.Parallel(16, 32):
                L[i, j] += X[bx * 16 + i, j]
            T.warpgroup_fence_operand(L, num_regs=4)
        T.copy(L, Y[bx * 16, 0])
    """
    params = 'X: T.Tensor((M, 32), "float16"), stop: T.Tensor((2,), "int32"), Y: T.Tensor((M, 32), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="2", arguments="M", target="cuda:sm_90a")
    x = RNG.integers(-9, 10, (21, 32)).astype(np.float16)
    expected = x * np.repeat([3.0, 8.0], 16)[:21, None]
    np.testing.assert_array_equal(kernel(x, np.array([3, 9], np.int32)), expected)


def test_names_that_are_no_names_of_c(tmp_path: Path) -> None:
    statements = """
        M_PI = T.alloc_shared((NULL,), "float32")
        _Complex = T.alloc_fragment((NULL,), "float32")
        T.copy(EOF[INFINITY * NULL], M_PI)
        T.copy(M_PI, _Complex)
        größe = T.alloc_var("float32", init=1.0)
        for NAN in T.Parallel(NULL):
            Übung[INFINITY * NULL + NAN] = _Complex[NAN] * TL_DEVICE + ß + größe
    """
    params = (
        'EOF: T.Tensor((N,), "float32"), TL_DEVICE: T.float32, ß: T.float32, '
        'errno: T.Tensor((N,), "float32"), Übung: T.Tensor((N,), "float32")'
    )
    kernel = load_body(
        tmp_path, statements, params, grid="T.ceildiv(N, NULL)", blocks="INFINITY", arguments="N, NULL=64"
    )
    x = RNG.standard_normal(100).astype(np.float32)
    np.testing.assert_allclose(kernel(x, 2.0, 3.0, x), 2 * x + 4, rtol=1e-6)
