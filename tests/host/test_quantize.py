"""The functions of tilelang.quantize, each against NumPy for every number that a field can hold."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(0)
KERNEL = """
    for i, j in T.Parallel({rows}, {columns}):
        B[i, j] = {function}({storage!r}, {width})({bits}, A[i, j // {fields}], j % {fields}, {zero}dtype={dtype!r})
"""


def fields(packed: np.ndarray, bits: int) -> np.ndarray:
    """The unsigned numbers of `bits` bits, the lowest first."""
    count = packed.dtype.itemsize * 8 // bits
    unsigned = packed.astype(np.int64)[..., None] >> (np.arange(count) * bits) & (1 << bits) - 1
    return unsigned.reshape(packed.shape[0], -1)


def fp4(values: np.ndarray) -> np.ndarray:
    exponents = values & 7
    return np.where(exponents == 0, 0.0, np.where(values >> 3, -1.0, 1.0) * 2.0 ** (exponents - 7))


EXPECTED = {
    "_tir_packed_to_unsigned_convert": lambda values, bits: values,
    "_tir_packed_to_unsigned_convert_with_zeros": lambda values, bits: values - 3,
    "_tir_packed_to_signed_convert": lambda values, bits: values - (1 << bits - 1),
    "_tir_packed_int_to_int_convert": lambda values, bits: np.where(values >> bits - 1, values - (1 << bits), values),
    "_tir_packed_to_fp4_to_f16": lambda values, bits: fp4(values),
}


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize(
    ("function", "storage", "bits"),
    [
        (function, storage, bits)
        for function in EXPECTED
        for storage, bits in (("int8", 4), ("uint8", 4), ("uint8", 2), ("uint32", 4))
        if bits == 4 or not function.endswith("fp4_to_f16")
    ],
)
def test_a_packed_number_is_taken_out(function: str, storage: str, bits: int, tmp_path: Path) -> None:
    info = np.iinfo(storage)
    rows, count = 8, info.bits // bits
    packed = RNG.integers(info.min, info.max, (rows, 64), dtype=storage, endpoint=True)
    statements = KERNEL.format(
        function=function, storage=storage.rstrip("0123456789"), width=info.bits, bits=bits, fields=count, rows=rows,
        columns=64 * count, zero="3, " if function.endswith("zeros") else "", dtype="float16",
    )  # fmt: skip
    kernel = load_body(
        tmp_path,
        statements,
        f'A: T.Tensor(({rows}, 64), "{storage}"), B: T.Tensor(({rows}, {64 * count}), "float16")',
        head=f"from tilelang.quantize import {function}",
    )
    np.testing.assert_array_equal(kernel(packed), EXPECTED[function](fields(packed, bits), bits))


PRODUCT = """
    A_shared = T.alloc_shared((64, 64), "float16")
    B_shared = T.alloc_shared((64, 32), "int8")
    B_local = T.alloc_fragment((64, 32), "int8")
    B_half = T.alloc_fragment((64, 64), "float16")
    C_local = T.alloc_fragment((64, 64), "float32")
    T.clear(C_local)
    for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
        T.copy(A[by * 64, k * 64], A_shared)
        T.copy(B[bx * 64, k * 32], B_shared)
        T.copy(B_shared, B_local)
        for i, j in T.Parallel(64, 64):
            B_half[i, j] = _tir_packed_to_unsigned_convert("int", 8)(4, B_local[i, j // 2], j % 2, dtype="float16")
        T.gemm(B_half, A_shared, C_local, transpose_B=True)
    T.copy(C_local, C[bx * 64, by * 64])
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_a_product_with_packed_weights(target: str, tmp_path: Path) -> None:
    """The dequantised product of the TileLang paper, appendix B.2."""
    kernel = load_body(
        tmp_path,
        PRODUCT,
        'A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K // 2), "int8"), C: T.Tensor((N, M), "float32")',
        head='from tilelang.quantize import _tir_packed_to_unsigned_convert\nM, N, K = T.dynamic("M, N, K")',
        grid="T.ceildiv(N, 64), T.ceildiv(M, 64)",
        blocks="(bx, by)",
        target=target,
    )
    a = RNG.integers(-4, 5, (72, 192)).astype(np.float16)
    b = RNG.integers(-128, 128, (104, 96), dtype=np.int8)
    np.testing.assert_array_equal(kernel(a, b), fields(b, 4) @ a.astype(np.float64).T)


DEQUANTISED = """
    A_shared = T.alloc_shared((64, 64), "float16")
    Bq_shared = T.alloc_shared((64, 32), "uint8")
    B_shared = T.alloc_shared((64, 64), "float16")
    C_local = T.alloc_fragment((64, 64), "float32")
    T.clear(C_local)
    for ko in T.Pipelined(3, num_stages=2):
        T.copy(A[by * 64, ko * 64], A_shared)
        T.copy(Bq[bx * 64, ko * 64 // 2], Bq_shared)
        for i, j in T.Parallel(64, 64):
            nibble = (Bq_shared[i, j // 2] >> (4 * (j % 2))) & 15
            B_shared[i, j] = (T.cast(nibble, "float16") - 8) * scale[bx * 64 + i, (ko * 64 + j) // 64]
        T.gemm(A_shared, B_shared, C_local, transpose_B=True)
    T.copy(C_local, C[by * 64, bx * 64])
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_packed_weights_at_half_of_an_offset(target: str, tmp_path: Path) -> None:
    """Columns from ko * 64 // 2 on: a quotient without a remainder, of rows of 96 bytes, loaded 16 bytes at a time."""
    params = 'A: T.Tensor((64, 192), "float16"), Bq: T.Tensor((128, 96), "uint8"), scale: T.Tensor((128, 3), "float16")'
    kernel = load_body(
        tmp_path,
        DEQUANTISED,
        f'{params}, C: T.Tensor((64, 128), "float32")',
        grid="2, 1",
        blocks="(bx, by)",
        target=target,
    )
    a = RNG.integers(-4, 5, (64, 192)).astype(np.float16)
    bq = RNG.integers(0, 256, (128, 96), dtype=np.uint8)
    scale = RNG.integers(1, 3, (128, 3)).astype(np.float16)
    b = (fields(bq, 4) - 8.0) * np.repeat(scale.astype(np.float64), 64, axis=1)
    np.testing.assert_array_equal(kernel(a, bq, scale), a.astype(np.float64) @ b.T)
    if target == "cuda:sm_80":
        assert "tl::copy_async<threads>(Bq.tile(" in kernel.source and "Aligned<16>>(Bq_data" in kernel.source
