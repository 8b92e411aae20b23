"""T.gemm_sp: products whose A has two of each four neighbours, on the CPU engine against a product in float64."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(8)
META = {"int8": np.int8, "int16": np.int16, "int32": np.int32, "uint32": np.uint32}


def sparse(rows: int, k: int, dtype: object = np.float16) -> np.ndarray:
    """Small integers, two of each four neighbours at any two places, one or both of them 0 now and then."""
    kept = np.argsort(RNG.random((rows, k // 4, 4)), axis=-1) < 2
    return (RNG.integers(-4, 5, kept.shape) * kept).reshape(rows, k).astype(dtype)


def compressed(a: np.ndarray, meta: object) -> tuple[np.ndarray, np.ndarray]:
    """The two of each four, in order, and for each four 4 bits that name them, the first four in the lowest bits."""
    fours = a.reshape(a.shape[0], -1, 4)
    places = np.sort(np.argsort(fours == 0, axis=-1, kind="stable")[..., :2], axis=-1)
    values = np.take_along_axis(fours, places, axis=-1)
    codes = (places[..., 0] | places[..., 1] << 2).astype(np.uint8)
    packed = codes[:, ::2] | codes[:, 1::2] << 4
    return values.reshape(a.shape[0], -1).copy(), np.ascontiguousarray(packed).view(meta)


PRODUCT = """
    A_shared = T.alloc_shared((64, {step} // 2), {dtype!r})
    E_shared = T.alloc_shared((64, {step} // {factor}), {meta!r})
    B_shared = T.alloc_shared({b_tile}, {dtype!r})
    C_local = T.alloc_fragment((64, 48), "float32")
    T.clear(C_local)
    for ko in T.Pipelined(T.ceildiv(K, {step}), num_stages=2):
        T.copy(A[by * 64, ko * ({step} // 2)], A_shared)
        T.copy(E[by * 64, ko * ({step} // {factor})], E_shared)
        T.copy(B[{b_place}], B_shared)
        T.gemm_sp(A_shared, E_shared, B_shared, C_local, transpose_B={tb})
    T.copy(C_local, C[by * 64, bx * 48])
"""


def run(folder: Path, dtype: str, meta: str, tb: bool, target: str, device: str = "cpu") -> None:
    """A ragged product against one in float64."""
    m, n, k, step = 100, 70, 160, 64
    statements = PRODUCT.format(
        step=step,
        factor=np.dtype(META[meta]).itemsize * 8,
        dtype=dtype,
        meta=meta,
        b_tile=(48, step) if tb else (step, 48),
        b_place=f"bx * 48, ko * {step}" if tb else f"ko * {step}, bx * 48",
        tb=tb,
    )
    factor = np.dtype(META[meta]).itemsize * 8
    params = f"A: T.Tensor((M, K // 2), {dtype!r}), E: T.Tensor((M, K // {factor}), {meta!r}), "
    params += f"B: T.Tensor({'(N, K)' if tb else '(K, N)'}, {dtype!r}), C: T.Tensor((M, N), 'float32')"
    grid = "T.ceildiv(N, 48), T.ceildiv(M, 64)"
    kernel = load_body(
        folder,
        statements,
        params,
        grid=grid,
        blocks="(bx, by)",
        arguments="M, N, K",
        target=target,
        device=device,
        check=device == "cpu",
        N=n,
        K=k,
    )
    numpy = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16)
    a, b = sparse(m, k, numpy), RNG.integers(-4, 5, (k, n)).astype(numpy)
    values, metadata = compressed(a, META[meta])
    found = kernel(values, metadata, np.ascontiguousarray(b.T) if tb else b)
    np.testing.assert_array_equal(found, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize(
    ("dtype", "meta", "tb", "target"),
    [
        ("float16", "int16", False, "cuda:sm_80"),
        ("float16", "int8", True, "cuda:sm_80"),
        ("float16", "int32", False, "cuda:sm_90a"),
        ("bfloat16", "uint32", True, "cuda:sm_89"),
    ],
)
def test_products(dtype: str, meta: str, tb: bool, target: str, tmp_path: Path) -> None:
    run(tmp_path, dtype, meta, tb, target)
