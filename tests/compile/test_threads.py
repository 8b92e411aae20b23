"""What kernels say about single threads compiles for GPUs: nvcc without a warning, clang for AMD."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import tile2cu
from tests.compile.test_emitted import ROOT, compiles, nvcc_command

KERNEL = '''
import tilelang
import tilelang.language as T

source = """
template <class A, class B> __device__ void decode(const A* packed, B* out, int n) {{
  for (int i = 0; i < n; ++i) out[i] = B((packed[i / 2] >> (4 * (i % 2))) & 15);
}}
"""


@tilelang.jit(out_idx=[-1])
def among_threads(M, N):
    @T.prim_func
    def main(X: T.Tensor((M, N), "uint8"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 64), threads=128, prelude=source) as bx:
            S = T.alloc_shared((128, 16), "uint8")
            F = T.alloc_fragment((128, 16), "float32")
            q = T.alloc_local((32,), "float32")
            b = T.alloc_local((4,), "int8")
            c = T.alloc_local((1,), "int32")
            tx = T.get_thread_binding()
            T.rng_init(42, off=tx)
            T.copy(X[bx * 64, 0], S)
            T.copy(S, F)
            T.print(F, msg="F")
            T.print(tx)
            T.device_assert(M > 3, "few rows")
            for i in T.serial(4):
                b[i] = tx
            c[0] = 0
            T.dp4a(b[0], b[0], c[0])
            T.call_extern("handle", "decode", T.access_ptr(S[tx, 0], "r", 16), T.access_ptr(q, "w"), 32)
            T.call_extern("handle", "decode", T.access_ptr(X[bx, tx], "r"), T.access_ptr(Y[bx, tx], "w", 2), 2)
            v = T.shfl_xor(q[0], 1) + T.shfl_up(q[1], tx % 8, 8) + T.cast(T.shfl_down(b[0], 2), "float32")
            n = T.any_sync(v > 3) + T.all_sync(v > 2) + T.shfl_sync(tx, 3) + {votes}
            m = T.match_any_sync(n) + T.match_all_sync(tx) + T.cast(T.ballot(v > 3), "uint32")
            T.sync_warp()
            r = T.warp_reduce_max(v) + T.rng_rand_float() + T.rng_rand_float(dist="normal")
            Y[bx, tx] = r + n + c[0] + T.cast(m ^ T.rng_rand(), "float32")

    return main
'''


def emitted(folder: Path, target: str, votes: str) -> Path:
    source = folder / "threads.py"
    source.write_text(KERNEL.format(votes=votes), encoding="utf-8")
    (made,) = tile2cu.emit(source, target=target).values()
    for name, text in made.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / f"among_threads{made.suffix}"


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("arch", ["80", "90a"])
def test_for_nvidia(arch: str, nvcc: str, tmp_path: Path) -> None:
    votes = "T.syncthreads_count(tx) + T.syncthreads_and(tx) + T.syncthreads_or(tx)"
    text = emitted(tmp_path, f"cuda:sm_{arch}", votes)
    assert "warning" not in compiles(nvcc_command(nvcc, arch, text, tmp_path / "kernel.cubin", "-cubin")).lower()


EARLY = """
import tilelang.language as T

@T.prim_func
def early(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(64, threads=64) as bx:
        big = T.alloc_shared((200, 64), "float32")
        tx = T.get_thread_binding()
        T.pdl_sync()
        T.copy(A[0, 0], big[0:64, 0:64])
        T.pdl_trigger()
        B[bx, tx] = big[bx, tx]
"""


def test_kernels_that_start_early(nvcc: str, tmp_path: Path) -> None:
    source = tmp_path / "early.py"
    source.write_text(EARLY, encoding="utf-8")
    (made,) = tile2cu.emit(source, target="cuda:sm_90a").values()
    for name, text in made.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = nvcc_command(nvcc, "90a", tmp_path / f"early{made.suffix}", tmp_path / "kernel.o")
    assert "warning" not in compiles(command).lower()


GROUPS = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def work_in_groups(M, N, K):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=256) as (bx, by):
            A_shared = T.alloc_shared((2, 64, 32), "float16")
            B_shared = T.alloc_shared((2, 32, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            tx = T.get_thread_binding()
{bars}
            with T.ws(0):
                T.clear(C_local)
            for ko in range(T.ceildiv(K, 32)):
                with T.ws(1):
{loads}
                with T.ws(0):
{waits}
                    T.gemm(A_shared[ko % 2, :, :], B_shared[ko % 2, :, :], C_local)
                    T.sync_threads(3, 128)
            with T.ws(0):
                T.copy(C_local, C[by * 64, bx * 64])
            if tx < 32:
                T.named_barrier_arrive(1, 64)
            elif tx < 64:
                T.sync_threads(1, 64)

    return main
"""
BY_TMA = {
    "bars": "            bars = T.alloc_barrier([128, 128])",
    "loads": """                    T.tma_copy(A[by * 64, ko * 32], A_shared[ko % 2, :, :], barrier=bars[ko % 2])
                    T.tma_copy(B[ko * 32, bx * 64], B_shared[ko % 2, :, :], barrier=bars[ko % 2])
                    T.mbarrier_expect_tx(bars[0], 0)
                    T.fence_proxy_async()
                    T.barrier_arrive(bars[ko % 2])""",
    "waits": "                    T.barrier_wait(bars[ko % 2], ko // 2 % 2)",
}
BY_THREADS = {
    "bars": "",
    "loads": """                    T.copy(A[by * 64, ko * 32], A_shared[ko % 2, :, :])
                    T.copy(B[ko * 32, bx * 64], B_shared[ko % 2, :, :])""",
    "waits": "",
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("arch", "parts"), [("80", BY_THREADS), ("90a", BY_TMA)])
def test_groups_for_nvidia(arch: str, parts: dict[str, str], nvcc: str, tmp_path: Path) -> None:
    source = tmp_path / "groups.py"
    source.write_text(GROUPS.format(**parts), encoding="utf-8")
    (made,) = tile2cu.emit(source, target=f"cuda:sm_{arch}").values()
    for name, text in made.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    printed = compiles(nvcc_command(nvcc, arch, tmp_path / "work_in_groups.cu", tmp_path / "kernel.cubin", "-cubin"))
    assert "warning" not in printed.lower()


def test_for_amd(clang_hip: str, tmp_path: Path) -> None:
    text = emitted(tmp_path, "hip:gfx942", "1")
    command = [
        clang_hip, "-x", "hip", "-std=c++17", "-O3", "--offload-arch=gfx942", "--cuda-device-only", "-nogpuinc",
        "-nogpulib", "-DTL_HIP_STANDALONE", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'headers'}", "-c", str(text),
        "-o", str(tmp_path / "kernel.o"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
