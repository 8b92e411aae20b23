"""T.pdl_sync and T.pdl_trigger: kernels that start while those before them end, where the chip has it."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tile2cu_runtime import Kernel

KERNELS = """
import tilelang.language as T

def scaled_product(M, N, K, block_M=64, block_N=64, block_K=32):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), S: T.Tensor((M, K), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, 16), threads=128) as bx:
            for i, j in T.Parallel(16, K):
                S[bx * 16 + i, j] = A[bx * 16 + i, j] * 2
            T.pdl_trigger()
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            {sync}
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(S[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])
    return main
"""
SYNC = "T.pdl_sync()"


def load(folder: Path, target: str, sync: str = SYNC) -> Kernel:
    path = folder / "product.py"
    path.write_text(KERNELS.format(sync=sync), encoding="utf-8")
    return tile2cu.load(path, device="cpu", target=target, check=True, M=72, N=80, K=64)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_a_product_of_what_the_kernel_before_wrote(target: str, tmp_path: Path) -> None:
    kernel, rng = load(tmp_path, target), np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((72, 64), (64, 80)))
    s, c = np.zeros((72, 64), np.float16), np.zeros((72, 80), np.float32)
    kernel(a, b, s, c)
    np.testing.assert_array_equal(c, 2 * a.astype(np.float64) @ b.astype(np.float64))
    early = target == "cuda:sm_90a"
    assert ("tl::launch_pdl<Shared>" in kernel.source) is early
    assert ("tl::griddepcontrol_launch_dependents();" in kernel.source) is early


def test_who_loads_waits_too_and_no_load_may_come_before(tmp_path: Path) -> None:
    text = load(tmp_path, "cuda:sm_90a").source
    second = text[text.rindex("__global__") :]
    assert second.index("tl::griddepcontrol_wait();") < second.index("tl::is_producer<")
    plain = text[: text.rindex("__global__")]
    assert "const tl::half* __restrict__ A_data" in plain  # it waits for nobody


def test_a_kernel_whose_threads_do_not_all_wait_starts_as_others_do(tmp_path: Path) -> None:
    text = load(tmp_path, "cuda:sm_90a", "if by == 0:\n                T.pdl_sync()").source
    assert "tl::griddepcontrol_wait();" in text and "tl::launch_pdl" not in text
