"""Elements of 4 bits, two a byte of memory: products, copies, casts and stores, against NumPy."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import ArgumentError

RNG = np.random.default_rng(4)
TYPES = {"int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "float4_e2m1fn": ml_dtypes.float4_e2m1fn}
TARGETS = ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"]


def numbers(dtype: str, *shape: int) -> np.ndarray:
    """Each of the sixteen codes, as numbers."""
    return unpacked(RNG.integers(0, 256, (*shape[:-1], shape[-1] // 2)).astype(np.uint8), dtype)


def packed(values: np.ndarray, dtype: str) -> np.ndarray:
    codes = values.astype(TYPES[dtype]).view(np.uint8) & 15
    return codes[..., ::2] | codes[..., 1::2] << 4


def unpacked(bytes_: np.ndarray, dtype: str) -> np.ndarray:
    bytes_ = bytes_.view(np.uint8)
    codes = np.stack((bytes_ & 15, bytes_ >> 4), axis=-1).reshape(*bytes_.shape[:-1], -1)
    if dtype == "int4":
        return np.where(codes > 7, codes.astype(np.int64) - 16, codes).astype(np.float64)
    return codes.view(TYPES[dtype]).astype(np.float64) if dtype != "uint4" else codes.astype(np.float64)


def test_the_two_ways_to_pack_agree() -> None:
    for dtype in TYPES:
        values = numbers(dtype, 8, 64)
        np.testing.assert_array_equal(unpacked(packed(values, dtype), dtype), values)


PRODUCT = """
    A_shared = T.alloc_shared({a}, {dtype!r})
    B_shared = T.alloc_shared({b}, {dtype!r})
    C_local = T.alloc_fragment((32, 48), {result!r})
    T.clear(C_local)
    for ko in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
        T.copy(A[{a_place}], A_shared)
        T.copy(B[{b_place}], B_shared)
        T.gemm(A_shared, B_shared, C_local, transpose_A={ta}, transpose_B={tb})
    T.copy(C_local, C[by * 32, bx * 48])
"""


@pytest.mark.sweep
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("ta, tb", [(False, True), (False, False), (True, True)])
@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
def test_products(dtype: str, ta: bool, tb: bool, target: str, tmp_path: Path) -> None:
    """Sizes that are ragged and rows that start anywhere; and such that everything is moved 16 bytes at once."""
    result = "float32" if dtype.startswith("f") else "int32"
    statements = PRODUCT.format(
        a=(64, 32) if ta else (32, 64),
        b=(48, 64) if tb else (64, 48),
        a_place="ko * 64, by * 32" if ta else "by * 32, ko * 64",
        b_place="bx * 48, ko * 64" if tb else "ko * 64, bx * 48",
        dtype=dtype,
        result=result,
        ta=ta,
        tb=tb,
    )
    a_shape, b_shape = ("(K, M)" if ta else "(M, K)"), ("(N, K)" if tb else "(K, N)")
    params = f"A: T.Tensor({a_shape}, {dtype!r}), B: T.Tensor({b_shape}, {dtype!r}), C: T.Tensor((M, N), {result!r})"
    grid = "T.ceildiv(N, 48), T.ceildiv(M, 32)"
    kernel = load_body(tmp_path, statements, params, grid=grid, blocks="(bx, by)", arguments="M, N, K", target=target)
    for m, n, k in ((50, 70, 94), (64, 96, 128)):
        a, b = numbers(dtype, m, k), numbers(dtype, k, n)
        given = [np.ascontiguousarray(each.T) if turned else each for each, turned in ((a, ta), (b, tb))]
        np.testing.assert_array_equal(kernel(*(packed(each, dtype) for each in given)), a @ b)
    on_tensor_cores = result == "int32" and not target.startswith("hip")
    assert ("gemm_fma" not in kernel.source) == on_tensor_cores


def test_an_operand_in_registers_goes_through_shared_memory(tmp_path: Path) -> None:
    statements = """
        A_local = T.alloc_fragment((32, 64), "int4")
        B_shared = T.alloc_shared((48, 64), "int4")
        C_local = T.alloc_fragment((32, 48), "int32")
        T.copy(A, A_local)
        T.copy(B, B_shared)
        T.clear(C_local)
        T.gemm(A_local, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C)
    """
    params = 'A: T.Tensor((32, 64), "int4"), B: T.Tensor((48, 64), "int4"), C: T.Tensor((32, 48), "int32")'
    a, b = numbers("int4", 32, 64), numbers("int4", 48, 64)
    found = load_body(tmp_path, statements, params)(packed(a, "int4"), packed(b, "int4"))
    np.testing.assert_array_equal(found, a @ b.T)


WIDE = ("float16", "bfloat16", "float32", "int8", "int32")


def numpy_type(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", TYPES)
def test_casts_from_memory(dtype: str, tmp_path: Path) -> None:
    lines = [f"S = T.alloc_shared((32, 64), {dtype!r})", "T.copy(X[bx * 32, 0], S)", "for i, j in T.Parallel(32, 64):"]
    for name, wide in zip("ABCDE", WIDE, strict=True):
        lines.append(f"    {name}[bx * 32 + i, j] = T.cast(S[i, j], {wide!r})")
    params = f"X: T.Tensor((M, 64), {dtype!r}), "
    params += ", ".join(f"{name}: T.Tensor((M, 64), {wide!r})" for name, wide in zip("ABCDE", WIDE, strict=True))
    kernel = load_body(tmp_path, "\n".join(lines), params, grid="T.ceildiv(M, 32)", arguments="M")
    x = numbers(dtype, 50, 64)
    found = [np.zeros((50, 64), numpy_type(wide)) for wide in WIDE]
    kernel(packed(x, dtype), *found)
    for each in found:
        expected = np.trunc(x) if each.dtype.kind == "i" else x
        np.testing.assert_array_equal(each.astype(np.float64), expected)


def casts_to_memory(dtype: str, rows: str) -> str:
    """Each of five tensors to one of elements of 4 bits: by a fragment, by it and a shared tile, or by a loop."""
    lines = [f"S = T.alloc_shared((32, 64), {dtype!r})", f"Y_local = T.alloc_fragment((32, 64), {dtype!r})"]
    for name, wide in zip("ABCDE", WIDE, strict=True):
        place = f"{name}_out[bx * 32, 0]"
        if rows == "loop":
            lines += ["for i, j in T.Parallel(32, 64):", f"    S[i, j] = T.cast({name}[bx * 32 + i, j], {dtype!r})"]
        else:
            lines += [
                f"{name}_local = T.alloc_fragment((32, 64), {wide!r})",
                f"T.copy({name}[bx * 32, 0], {name}_local)",
            ]
            lines += ["for i, j in T.Parallel(32, 64):", f"    Y_local[i, j] = {name}_local[i, j]"]
            lines += [f"T.copy(Y_local, {place if rows == 'fragment' else 'S'})"]
        lines += [] if rows == "fragment" else [f"T.copy(S, {place})"]
    return "\n".join(lines)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rows", ["fragment", "shared", "loop"])
def test_casts_to_memory(dtype: str, rows: str, tmp_path: Path) -> None:
    params = ", ".join(f"{name}: T.Tensor((M, 64), {wide!r})" for name, wide in zip("ABCDE", WIDE, strict=True))
    params += "".join(f", {name}_out: T.Tensor((M, 64), {dtype!r})" for name in "ABCDE")
    kernel = load_body(tmp_path, casts_to_memory(dtype, rows), params, grid="T.ceildiv(M, 32)", arguments="M")
    if dtype == "float4_e2m1fn":
        steps = np.array([0, 0.2, 0.25, 0.3, 0.75, 1.25, 1.75, 2.5, 3.5, 4.9, 5, 5.1, 6, 7, 100, np.inf])
        x = RNG.choice(np.concatenate((steps, -steps)), (50, 64))
    else:
        x = RNG.integers(0 if dtype == "uint4" else -8, 16 if dtype == "uint4" else 8, (50, 64)).astype(np.float64)
    given = [
        np.nan_to_num(x, posinf=99, neginf=-99).astype(each) if "int" in each else x.astype(numpy_type(each))
        for each in WIDE
    ]
    found = [np.zeros((50, 32), np.uint8) for _ in WIDE]
    kernel(*given, *found)
    for before, after in zip(given, found, strict=True):
        value = before.astype(np.float32)
        value = np.clip(value, -6, 6) if dtype == "float4_e2m1fn" else value
        np.testing.assert_array_equal(unpacked(after, dtype), value.astype(TYPES[dtype]).astype(np.float64))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("columns", [64, 34, 6])
def test_rows_that_start_anywhere(columns: int, tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((16, 32), "int4")
        L = T.alloc_fragment((16, 32), "int4")
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
            T.copy(X[bx * 16, k * 32], S)
            T.copy(S, L)
            for i, j in T.Parallel(16, 32):
                L[i, j] = -L[i, j]
            T.copy(L, Y[bx * 16, k * 32])
    """
    params = 'X: T.Tensor((M, K), "int4"), Y: T.Tensor((M, K), "int4")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 16)", arguments="M, K")
    x = numbers("int4", 21, columns)
    expected = np.where(x == -8, -8, -x)
    np.testing.assert_array_equal(unpacked(kernel(packed(x, "int4")), "int4"), expected)


def test_bytes_seen_as_elements(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((16, 32), "uint8")
        T.copy(X, S)
        V = T.view(S, (16, 64), "float4_e2m1fn")
        W = T.view(X, (16, 64), "int4")
        for i, j in T.Parallel(16, 64):
            Y[i, j] = T.cast(V[i, j], "float32") + T.cast(W[i, j], "float32") * 16.0
    """
    params = 'X: T.Tensor((16, 32), "uint8"), Y: T.Tensor((16, 64), "float32")'
    x = RNG.integers(0, 256, (16, 32)).astype(np.uint8)
    expected = unpacked(x, "float4_e2m1fn") + 16 * unpacked(x, "int4")
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), expected)


def test_arguments_hold_two_elements_a_byte(tmp_path: Path) -> None:
    statements = "S = T.alloc_shared((16, 64), 'int4')\nT.copy(X, S)\nT.copy(S, Y)\n"
    params = 'X: T.Tensor((16, 64), "int4"), Y: T.Tensor((16, 64), "int4")'
    kernel = load_body(tmp_path, statements, params)
    for dtype in (np.uint8, np.int8):
        x = packed(numbers("int4", 16, 64), "int4").view(dtype)
        found = kernel(x)
        assert found.dtype == np.int8 and found.shape == (16, 32)
        np.testing.assert_array_equal(found.view(np.uint8), x.view(np.uint8))
    with pytest.raises(ArgumentError, match="must be int8 or uint8, two int4 per byte, not int4"):
        kernel(np.zeros((16, 64), ml_dtypes.int4))
    with pytest.raises(ArgumentError, match="dimension 1 must be 64, not 128"):
        kernel(np.zeros((16, 64), np.uint8))


def test_a_size_that_ends_within_a_byte_is_refused(tmp_path: Path) -> None:
    statements = "S = T.alloc_shared((16, 64), 'int4')\nT.copy(X[0, 0], S)\nT.copy(S, Y)\n"
    params = 'X: T.Tensor((M, K), "int4"), Y: T.Tensor((16, 64), "int4")'
    kernel = load_body(tmp_path, statements, params, arguments="M, K")
    assert "if (K % 2 != 0) return TL_NOT_SUPPORTED;" in kernel.source


def test_quantisation_to_four_bits(tmp_path: Path) -> None:
    """A tile's rows are scaled to what fits, rounded and packed, and become numbers again."""
    statements = """
        X_local = T.alloc_fragment((32, 32), "bfloat16")
        most = T.alloc_fragment((32,), "float32")
        Q_local = T.alloc_fragment((32, 32), "float4_e2m1fn")
        Q_shared = T.alloc_shared((32, 32), "float4_e2m1fn")
        T.copy(X[bx * 32, by * 32], X_local)
        T.reduce_absmax(X_local, most, dim=1)
        for i, j in T.Parallel(32, 32):
            Q_local[i, j] = T.clamp(X_local[i, j] / (T.max(most[i], 1e-4) / 6.0), -6.0, 6.0)
        T.copy(Q_local, Q_shared)
        T.copy(Q_shared, Q[bx * 32, by * 32])
    """
    params = 'X: T.Tensor((M, 64), "bfloat16"), Q: T.Tensor((M, 64), "float4_e2m1fn")'
    grid = "T.ceildiv(M, 32), 2"
    kernel = load_body(tmp_path, statements, params, grid=grid, blocks="(bx, by)", arguments="M")
    x = RNG.standard_normal((50, 64)).astype(ml_dtypes.bfloat16)
    wide = x.astype(np.float32).reshape(50, 2, 32)
    most = np.maximum(np.abs(wide).max(axis=2, keepdims=True), np.float32(1e-4)) / np.float32(6)
    expected = np.clip(wide / most, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float64).reshape(50, 64)
    np.testing.assert_array_equal(unpacked(kernel(x), "float4_e2m1fn"), expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
def test_single_elements_of_a_tensor(dtype: str, target: str, tmp_path: Path) -> None:
    """Halves of one byte are written by different threads, and by different blocks where parts begin within a byte."""
    statements = f"""
        for i, j in T.Parallel(16, 15):
            if j + bx * 15 < N:
                Y[by * 16 + i, N - 1 - bx * 15 - j] = T.cast(X[by * 16 + i, bx * 15 + j], {dtype!r})
        if bx == 0:
            Z[by] = T.cast(X[by, 1], {dtype!r})
    """
    params = f"X: T.Tensor((M, N), 'float32'), Z: T.Tensor((8,), {dtype!r}), Y: T.Tensor((M, N), {dtype!r})"
    grid = "T.ceildiv(N, 15), T.ceildiv(M, 16)"
    kernel = load_body(tmp_path, statements, params, grid=grid, blocks="(bx, by)", arguments="M, N", target=target)
    assert "two threads may write halves of one byte, so each write is atomic" in kernel.source
    x, z = numbers(dtype, 37, 46), np.zeros(4, np.uint8)
    np.testing.assert_array_equal(unpacked(kernel(x.astype(np.float32), z), dtype), x[:, ::-1])
    np.testing.assert_array_equal(unpacked(z, dtype)[:3], x[:3, 1])


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("dtype", "target"), [("int4", "cuda:sm_80"), ("uint4", "hip:gfx942"), ("float4_e2m1fn", "cuda:sm_90a")]
)
def test_single_elements_of_shared_tiles_and_sums(dtype: str, target: str, tmp_path: Path) -> None:
    """Halves of one byte of a tile by different threads; reductions of tile and fragment have wider results."""
    statements = f"""
        S = T.alloc_shared((16, 32), {dtype!r})
        row = T.alloc_shared((32,), {dtype!r})
        L = T.alloc_fragment((16, 32), {dtype!r})
        sums = T.alloc_fragment((16,), "float32")
        least = T.alloc_fragment((16,), "float32")
        tx = T.get_thread_binding()
        T.clear(row)
        for j, i in T.Parallel(32, 16):
            S[i, 31 - j] = T.cast(X[bx * 16 + i, j], {dtype!r})
        if tx < 32:
            row[tx] = S[0, tx]
        T.copy(S, L)
        T.reduce_sum(S, sums, dim=1)
        T.reduce_min(L, least, dim=1)
        T.copy(S, Y[bx * 16, 0])
        T.copy(row, Z[bx, 0:32])
        for i in T.Parallel(16):
            R[bx * 16 + i, 0] = sums[i]
            R[bx * 16 + i, 1] = least[i]
    """
    params = (
        f"X: T.Tensor((M, 32), 'float32'), Z: T.Tensor((3, 32), {dtype!r}), R: T.Tensor((M, 2), 'float32'), "
        f"Y: T.Tensor((M, 32), {dtype!r})"
    )
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 16)", arguments="M", target=target)
    x, z, r = numbers(dtype, 40, 32), np.zeros((3, 16), np.uint8), np.zeros((40, 2), np.float32)
    np.testing.assert_array_equal(unpacked(kernel(x.astype(np.float32), z, r), dtype), x[:, ::-1])
    np.testing.assert_array_equal(unpacked(z, dtype), x[::16, ::-1])
    np.testing.assert_array_equal(r, np.stack((x.sum(axis=1), x.min(axis=1)), axis=1))
