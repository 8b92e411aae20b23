"""Constructs that no golden file has: their text compiles by nvcc without a warning or a spill."""

from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.compile.test_emitted import SPILL, compiles, nvcc_command
from tile2cu.api import emit_text
from tile2cu.targets import find

_KERNEL = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def small(M=100):
    @T.prim_func
    def body(X: T.Tensor((M, 64), "float16"), Y: T.Tensor((M, 64), "float32"), Z: T.Tensor((M, 8), "float32")):
        with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
            S = T.alloc_shared((64, 64), "float16")
            L = T.alloc_fragment((64, 64), "float32")
            T.copy(X[bx * 64, 0], S)
{statements}
            T.copy(L, Y[bx * 64, 0])
    return body
"""
_STATEMENTS = {
    "views": """
        L_heads = T.reshape(L, (64, 8, 8))
        sums = T.alloc_fragment((64, 8), "float32")
        S_words = T.view(S, (32, 64), "uint32")
        X_bits = T.view(X, (M * 64,), "uint16")
        T.gemm(S, S, L, transpose_B=True, clear_accum=True)
        T.reduce_sum(L_heads, sums, dim=2)
        for i, j in T.Parallel(64, 8):
            Z[bx * 64 + i, j] = sums[i, j] + S_words[i // 2, j] + X_bits[i]
    """,
    "rounding": """
        T.clear(L)
        for i, j in T.Parallel(64, 8):
            x = T.ieee_add(Z[bx * 64 + i, j], 1.0, "ru") + T.ieee_fdiv(1.0, Z[bx * 64 + i, j], "rd")
            y = T.ieee_fmaf(x, x, T.ieee_fsqrt(x, "rz"), "rz") + T.ieee_frcp(x) + T.ieee_frsqrt(x)
            Z[bx * 64 + i, j] = y + T.cast(T.ieee_mul(T.cast(x, "float64"), 3.0, "ru"), "float32") + T.__ffs(i)
            Z[bx * 64 + i, j] += T.ieee_sub(X[bx * 64 + i, j], X[bx * 64 + i, j + 8])
    """,
    "functions of cuda_fp16.h": """
        T.clear(L)
        for i, j in T.Parallel(64, 8):
            x = T.call_extern("float16", "__float2half_rz", Z[bx * 64 + i, j])
            Z[bx * 64 + i, j] = x + T.call_extern("float32", "__half2float", X[bx * 64 + i, j])
    """,
    "atomics": """
        S_half = T.alloc_shared((64,), "float16")
        S_short = T.alloc_shared((64,), "int16")
        tx = T.get_thread_binding()
        T.clear(L)
        T.clear(S_half)
        T.clear(S_short)
        before = T.atomic_add(Z[0, 0], 1, memory_order="acq_rel", return_prev=True)
        Z[0, 1] = T.atomic_max(S_half[tx % 64], before, return_prev=True)
        Z[0, 2] = T.atomic_min(S_short[tx % 64], tx, return_prev=True, memory_order="seq_cst")
        T.atomic_store(Z[0, 3], 2.0, memory_order="release")
        while T.atomic_load(Z[0, 4], memory_order="acquire") == 0:
            T.atomic_store(S_half[tx % 64], T.atomic_load(X[0, tx % 64]), memory_order="relaxed")
    """,
}


_GROUPS = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def small(M=100):
    @T.prim_func
    def body(X: T.Tensor((M, 128), "float16"), Y: T.Tensor((M, 256), "float32")):
        with T.Kernel(T.ceildiv(M, 64), threads=384) as bx:
            S = T.alloc_shared((2, 64, 128), "float16")
            P = T.alloc_shared((64, 64), "float16")
            scores = T.alloc_fragment((64, 64), "float32")
            left = T.alloc_fragment((64, 128), "float32")
            right = T.alloc_fragment((64, 128), "float32")
            ready = T.alloc_barrier([128, 128])
            free = T.alloc_barrier([256, 256])
            p_ready = T.alloc_barrier(128)
            p_free = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            if tx < 128:
                T.set_max_nreg(216, 1)
                T.clear(left)
                for k in range(T.ceildiv(M, 64)):
                    T.barrier_wait(ready[k % 2], k // 2 % 2)
                    for j in T.unroll(2):
                        K = S[k % 2, :, j * 64 : j * 64 + 64]
                        T.wgmma_gemm(K, K, scores, transpose_B=True, clear_accum=j == 0)
                    T.wait_wgmma(0)
                    T.barrier_wait(p_free, k % 2 ^ 1)
                    T.copy(scores, P)
                    T.wgmma_gemm(P, S[k % 2, :, :], left)
                    T.barrier_arrive(p_ready)
                    T.wait_wgmma(0)
                    T.barrier_arrive(free[k % 2])
                T.copy(left, Y[bx * 64, 0])
            elif tx < 256:
                T.set_max_nreg(216, 1)
                T.clear(right)
                for k in range(T.ceildiv(M, 64)):
                    T.barrier_wait(p_ready, k % 2)
                    T.gemm(P, S[k % 2, :, :], right)
                    T.barrier_arrive(p_free)
                    T.barrier_arrive(free[k % 2])
                T.copy(right, Y[bx * 64, 128])
            else:
                T.set_max_nreg(72, 0)
                for k in range(T.ceildiv(M, 64)):
                    T.barrier_wait(free[k % 2], k // 2 % 2 ^ 1)
                    T.tma_copy(X[k * 64, 0], S[k % 2, :, :], barrier=ready[k % 2])
                    T.barrier_arrive(ready[k % 2])
    return body
"""


@pytest.mark.sweep(cases=3)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("construct", _STATEMENTS)
def test_nvcc_compiles(construct: str, target: str, nvcc: str, tmp_path: Path) -> None:
    statements = indent(dedent(_STATEMENTS[construct]).strip("\n"), " " * 12)
    _compiles_clean(_KERNEL.format(statements=statements), target, nvcc, tmp_path)


def test_products_in_flight_are_not_serialised(nvcc: str, tmp_path: Path) -> None:
    """ptxas says so (C7510 and on) where a statement between start and wait stands in their way."""
    text = _compiles_clean(_GROUPS, "cuda:sm_90a", nvcc, tmp_path)
    assert text.count("tl::gemm_start(") == 2 and text.count("tl::warpgroup_reg_alloc<216>()") == 2


_UNEQUAL = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def small(M=100):
    @T.prim_func
    def body(X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M, 64), "float32"), W: T.Tensor((M, 160), "int32")):
        with T.Kernel(T.ceildiv(M, 64), threads=160) as bx:
            S = T.alloc_shared((64, 64), "float32")
            L = T.alloc_fragment((64, 64), "float32")
            sums = T.alloc_fragment((64,), "float32")
            tx = T.get_thread_binding()
            T.copy(X[bx * 64, 0], S)
            if tx < 32:
                T.copy(S, L)
                T.reduce_sum(L, sums, dim=1)
                T.copy(sums, Y[bx, 0])
                W[bx, tx] = 1
            else:
                T.copy(S, L)
                T.copy(L, Y[bx * 64, 0])
                W[bx, tx] = 2
    return body
"""


@pytest.mark.nightly
@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_groups_of_different_sizes(target: str, nvcc: str, tmp_path: Path) -> None:
    assert "#define TL_GROUP 32, 128" in _compiles_clean(_UNEQUAL, target, nvcc, tmp_path)


def _compiles_clean(text: str, target: str, nvcc: str, tmp_path: Path) -> str:
    """The emitted text."""
    (emitted,) = emit_text(Path("small.py"), kernel=None, target=find(target), bindings={}, text=text)
    for name, content in emitted.files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    arch = find(target).arch.removeprefix("sm_")
    printed = compiles(nvcc_command(nvcc, arch, tmp_path / "small.cu", tmp_path / "small.cubin", "-cubin"))
    assert "warning" not in printed.lower()
    assert "Potential Performance Loss" not in printed
    assert all(bytes_used == ("0", "0", "0") for bytes_used in SPILL.findall(printed)), printed
    return (tmp_path / "small.cu").read_text(encoding="utf-8")
