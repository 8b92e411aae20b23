"""Texts about elements of 4 bits, and about sparse matrices, compile, on chips with instructions and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compile.test_emitted import compiles, nvcc_command
from tile2cu.api import emit_text
from tile2cu.targets import find

KERNEL = """
import tilelang.language as T

M, N, K = T.dynamic("M, N, K")

@T.prim_func
def both(A: T.Tensor((M, K), {dtype!r}), B: T.Tensor((N, K), {dtype!r}), C: T.Tensor((M, N), "int32"),
         X: T.Tensor((M, K), "float16"), Y: T.Tensor((M, K), "float4_e2m1fn")):
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
        A_shared = T.alloc_shared((64, 128), {dtype!r})
        B_shared = T.alloc_shared((64, 128), {dtype!r})
        C_local = T.alloc_fragment((64, 64), "int32")
        X_local = T.alloc_fragment((64, 64), "float16")
        Y_local = T.alloc_fragment((64, 64), "float4_e2m1fn")
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, 128), num_stages=2):
            T.copy(A[by * 64, ko * 128], A_shared)
            T.copy(B[bx * 64, ko * 128], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C[by * 64, bx * 64])
        Z_shared = T.alloc_shared((64, 64), {dtype!r})
        T.copy(A[by * 64, 0], Z_shared)
        T.copy(X[by * 64, bx * 64], X_local)
        for i, j in T.Parallel(64, 64):
            Y_local[i, j] = X_local[i, j] + T.cast(Z_shared[i, j], "float16")
        T.copy(Y_local, Y[by * 64, bx * 64])
"""


@pytest.mark.sweep(every=6)
@pytest.mark.parametrize(("target", "arch"), [("cuda:sm_80", "80"), ("cuda:sm_80", "90a"), ("cuda:sm_90a", "90a")])
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_nvcc_compiles_without_warning(dtype: str, target: str, arch: str, nvcc: str, tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(KERNEL.format(dtype=dtype), encoding="utf-8")
    (emitted,) = emit_text(tmp_path / "both.py", kernel=None, target=find(target), bindings={})
    for name, content in emitted.files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert (
        "warning"
        not in compiles(nvcc_command(nvcc, arch, tmp_path / "both.cu", tmp_path / "both.cubin", "-cubin")).lower()
    )


SPARSE = """
import tilelang.language as T

M, N, K = T.dynamic("M, N, K")

@T.prim_func
def thin(A: T.Tensor((M, K // 2), {dtype!r}), E: T.Tensor((M, K // 16), "int16"), B: T.Tensor((K, N), {dtype!r}),
         C: T.Tensor((M, N), {total!r})):
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
        A_shared = T.alloc_shared((64, 32), {dtype!r})
        E_shared = T.alloc_shared((64, 4), "int16")
        B_shared = T.alloc_shared((64, 64), {dtype!r})
        C_local = T.alloc_fragment((64, 64), {total!r})
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
            T.copy(A[by * 64, ko * 32], A_shared)
            T.copy(E[by * 64, ko * 4], E_shared)
            T.copy(B[ko * 64, bx * 64], B_shared)
            T.gemm_sp(A_shared, E_shared, B_shared, C_local)
        T.copy(C_local, C[by * 64, bx * 64])
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("target", "arch", "dtype"),
    [
        ("cuda:sm_80", "80", "float16"),
        ("cuda:sm_80", "80", "int8"),
        ("cuda:sm_89", "89", "float8_e4m3"),
        ("cuda:sm_90a", "90a", "bfloat16"),
        ("cuda:sm_90a", "90a", "float8_e5m2"),
    ],
)
def test_sparse_products(target: str, arch: str, dtype: str, nvcc: str, tmp_path: Path) -> None:
    (tmp_path / "thin.py").write_text(
        SPARSE.format(dtype=dtype, total="int32" if dtype == "int8" else "float32"), encoding="utf-8"
    )
    (emitted,) = emit_text(tmp_path / "thin.py", kernel=None, target=find(target), bindings={})
    for name, content in emitted.files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert (
        "warning"
        not in compiles(nvcc_command(nvcc, arch, tmp_path / "thin.cu", tmp_path / "thin.cubin", "-cubin")).lower()
    )
