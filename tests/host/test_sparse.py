"""T.gemm_sp: products whose A has two of each four neighbours, on the CPU engine against a product in float64."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu.core.errors import Tile2CuError

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
    A_shared = T.alloc_shared({a_tile}, {dtype!r})
    E_shared = T.alloc_shared({e_tile}, {meta!r})
    B_shared = T.alloc_shared({b_tile}, {dtype!r})
    C_local = T.alloc_fragment((64, 48), {total!r})
    T.clear(C_local)
    for ko in T.Pipelined(T.ceildiv(K, {step}), num_stages=2):
        T.copy(A[{a_place}], A_shared)
        T.copy(E[{e_place}], E_shared)
        T.copy(B[{b_place}], B_shared)
        T.gemm_sp(A_shared, E_shared, B_shared, C_local, transpose_A={ta}, transpose_E={te}, transpose_B={tb})
    T.copy(C_local, C[by * 64, bx * 48])
"""


TYPES = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "int8": np.int8,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}


def swapped(sides: tuple[str, str], swap: bool) -> str:
    return ", ".join(sides[::-1] if swap else sides)


def run(folder: Path, dtype: str, meta: str, transposed: str, target: str, device: str = "cpu", step: int = 64) -> None:
    """A ragged product against one in float64; `transposed` names the operands that are."""
    m, n, k = 100, 70, 160 if step == 64 else 320
    factor = np.dtype(META[meta]).itemsize * 8
    total = "int32" if dtype == "int8" else "float32"
    ta, te, tb = (operand in transposed for operand in "AEB")
    statements = PRODUCT.format(
        step=step,
        dtype=dtype,
        meta=meta,
        total=total,
        a_tile=f"({swapped(('64', str(step // 2)), ta)})",
        e_tile=f"({swapped(('64', str(step // factor)), te)})",
        b_tile=f"({swapped((str(step), '48'), tb)})",
        a_place=swapped(("by * 64", f"ko * {step // 2}"), ta),
        e_place=swapped(("by * 64", f"ko * {step // factor}"), te),
        b_place=swapped((f"ko * {step}", "bx * 48"), tb),
        ta=ta,
        te=te,
        tb=tb,
    )
    params = f"A: T.Tensor(({swapped(('M', 'K // 2'), ta)}), {dtype!r}), "
    params += f"E: T.Tensor(({swapped(('M', f'K // {factor}'), te)}), {meta!r}), "
    params += f"B: T.Tensor(({swapped(('K', 'N'), tb)}), {dtype!r}), C: T.Tensor((M, N), {total!r})"
    kernel = load_body(
        folder,
        statements,
        params,
        grid="T.ceildiv(N, 48), T.ceildiv(M, 64)",
        blocks="(bx, by)",
        arguments="M, N, K",
        target=target,
        device=device,
        check=device == "cpu",
        M=m,
        N=n,
        K=k,
    )
    a, b = sparse(m, k, TYPES[dtype]), RNG.integers(-4, 5, (k, n)).astype(TYPES[dtype])
    values, metadata = compressed(a, META[meta])
    operands = [
        np.ascontiguousarray(each.T) if swap else each for each, swap in ((values, ta), (metadata, te), (b, tb))
    ]
    np.testing.assert_array_equal(kernel(*operands), a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize(
    ("dtype", "meta", "transposed", "target", "step"),
    [
        ("float16", "int16", "", "cuda:sm_80", 64),
        ("float16", "int8", "B", "cuda:sm_80", 64),
        ("float16", "int32", "AE", "cuda:sm_90a", 64),
        ("bfloat16", "uint32", "AEB", "cuda:sm_89", 64),
        ("bfloat16", "int16", "A", "cuda:sm_90a", 64),
        ("int8", "int32", "B", "cuda:sm_80", 64),
        ("int8", "int16", "AE", "cuda:sm_90a", 128),
        ("int8", "int8", "E", "cuda:sm_80", 64),
        ("float8_e4m3", "int32", "", "cuda:sm_89", 64),
        ("float8_e5m2", "int16", "AEB", "cuda:sm_90a", 128),
    ],
)
def test_products(dtype: str, meta: str, transposed: str, target: str, step: int, tmp_path: Path) -> None:
    run(tmp_path, dtype, meta, transposed, target, step=step)


def test_a_chip_without_the_instruction_says_so(tmp_path: Path) -> None:
    with pytest.raises(Tile2CuError, match="no instruction of cuda:sm_80 multiplies a sparse matrix of float8_e4m3"):
        run(tmp_path, "float8_e4m3", "int16", "", "cuda:sm_80")
