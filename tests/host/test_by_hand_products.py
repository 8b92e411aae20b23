"""Products on wgmma in groups that the user makes: parts of tiles, products in flight, fences and registers."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel, LaunchError

RNG = np.random.default_rng(0)
GEMM = 'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")'
STEPS = """
    A_shared = T.alloc_shared((2, 64, 128), "float16")
    B_shared = T.alloc_shared((2, 128, 64), "float16")
    C_local = T.alloc_fragment((64, 64), "float32")
    bars = T.alloc_barrier([128, 128, 128, 128])
    with T.ws(0):
        T.dec_max_nreg(40)
    with T.ws(1):
        T.inc_max_nreg(256)
    for ko in range(T.ceildiv(K, 128)):
        with T.ws(0):
            T.barrier_wait(bars[ko % 2 + 2], ((ko // 2) % 2) ^ 1)
            T.tma_copy(A[by * 64, ko * 128], A_shared[ko % 2, :, :], barrier=bars[ko % 2])
            T.tma_copy(B[ko * 128, bx * 64], B_shared[ko % 2, :, :], barrier=bars[ko % 2])
            T.barrier_arrive(bars[ko % 2])
        with T.ws(1):
            T.barrier_wait(bars[ko % 2], (ko // 2) % 2)
            for j in T.unroll(4):
                T.wgmma_gemm(
                    A_shared[ko % 2, :, j * 32 : (j + 1) * 32],
                    B_shared[ko % 2, j * 32 : (j + 1) * 32, :],
                    C_local,
                    clear_accum=(ko == 0) & (j == 0),
                )
            T.wait_wgmma(0)
            T.barrier_arrive(bars[ko % 2 + 2])
    with T.ws(1):
        T.copy(C_local, C[by * 64, bx * 64])
"""
HALVES = """
    A_shared = T.alloc_shared((64, 32), "float16")
    B_shared = T.alloc_shared((32, 128), "float16")
    P_shared = T.alloc_shared((64, 32), "float16")
    C_local = T.alloc_fragment((64, 64), "float32")
    D_local = T.alloc_fragment((64, 64), "float32")
    ready = T.alloc_barrier(128)
    done = T.alloc_barrier(128)
    with T.ws(1):
        T.clear(C_local)
        T.clear(D_local)
    for ko in range(T.ceildiv(K, 32)):
        with T.ws(0):
            T.barrier_wait(done, (ko + 1) % 2)
            T.copy(A[by * 64, ko * 32], A_shared)
            T.copy(B[ko * 32, bx * 128], B_shared)
            for i, j in T.Parallel(64, 32):
                P_shared[i, j] = A_shared[i, j] * T.float16(2)
            T.barrier_arrive(ready)
        with T.ws(1):
            T.barrier_wait(ready, ko % 2)
            T.wgmma_gemm(P_shared, B_shared[:, 0:64], C_local)
            T.wgmma_gemm(P_shared, B_shared[:, 64:128], D_local)
            T.wait_wgmma(1)
            for i, j in T.Parallel(64, 64):
                C_local[i, j] += 1.0
            T.wait_wgmma(0)
            T.barrier_arrive(done)
    with T.ws(1):
        T.copy(C_local, C[by * 64, bx * 128])
        T.copy(D_local, C[by * 64, bx * 128 + 64])
"""


def gemm(folder: Path, statements: str, *, columns: int = 64, target: str = "cuda:sm_90a") -> Kernel:
    return load_body(
        folder,
        statements,
        GEMM,
        grid=f"T.ceildiv(N, {columns}), T.ceildiv(M, 64)",
        blocks="(bx, by)",
        arguments="M, N, K",
        threads=256,
        target=target,
    )


def operands(m: int = 100, n: int = 72, k: int = 280) -> tuple[np.ndarray, np.ndarray]:
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    return a, b


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


def kernel_text(kernel: Kernel) -> str:
    return kernel.source.partition("__global__")[2]


def test_parts_of_tiles_stay_in_flight(tmp_path: Path) -> None:
    kernel = gemm(tmp_path, STEPS)
    a, b = operands()
    np.testing.assert_array_equal(kernel(a, b), product(a, b))
    text = kernel_text(kernel)
    assert "tl::overwrite_if(" in text
    assert text.index("tl::gemm_start(") < text.index("tl::gemm_wait<0>(C_local)")
    assert "fence_async_proxy" not in text, "TMA writes as wgmma reads"
    assert "tl::warpgroup_reg_dealloc<40>()" in text and "tl::warpgroup_reg_alloc<256>()" in text
    assert "__launch_bounds__(block_threads, 1)" in kernel.source


def test_a_result_is_used_while_another_product_is_in_flight(tmp_path: Path) -> None:
    kernel = gemm(tmp_path, HALVES, columns=128)
    a, b = operands(n=200, k=88)
    expected = 2 * product(a, b)
    expected[:, np.arange(200) % 128 < 64] += 3  # turns
    np.testing.assert_array_equal(kernel(a, b), expected)
    text = kernel_text(kernel)
    assert "tl::gemm_wait<1>(C_local)" in text and "tl::gemm_wait<0>(D_local)" in text
    fence = text.index("tl::fence_async_proxy()")
    assert text.index("tl::copy<threads>(B.tile(") < fence < text.index("tl::mbarrier_arrive(ready[0])")


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("wait", "instead", "reason"),
    [
        ("T.wait_wgmma(1)", "pass", "uses its result `C_local`"),
        ("T.wait_wgmma(0)", "pass", "uses its result `D_local`"),
    ],
)
def test_a_product_that_nobody_waits_for_in_time_is_waited_for_at_once(
    wait: str, instead: str, reason: str, tmp_path: Path
) -> None:
    kernel = gemm(tmp_path, HALVES.replace(wait, instead), columns=128)
    a, b = operands(n=200, k=88)
    expected = 2 * product(a, b)
    expected[:, np.arange(200) % 128 < 64] += 3
    np.testing.assert_array_equal(kernel(a, b), expected)
    assert reason in " ".join(line.strip(" /") for line in kernel.source.splitlines())


@pytest.mark.nightly
def test_the_engine_finds_operands_that_are_overwritten_in_flight(tmp_path: Path) -> None:
    early = HALVES.replace("            T.barrier_arrive(done)\n", "")
    early = early.replace(
        "            T.wait_wgmma(1)\n", "            T.barrier_arrive(done)\n            T.wait_wgmma(1)\n"
    )
    kernel = gemm(tmp_path, early, columns=128)
    with pytest.raises((CheckError, LaunchError), match="race|in-flight"):
        kernel(*operands(n=200, k=280))


def test_shares_that_do_not_add_up_are_left_out(tmp_path: Path) -> None:
    kernel = gemm(tmp_path, STEPS.replace("dec_max_nreg(40)", "dec_max_nreg(240)").replace("(256)", "(264)"))
    a, b = operands()
    np.testing.assert_array_equal(kernel(a, b), product(a, b))
    assert "warpgroup_reg_alloc" not in kernel.source and "left out: line" in kernel.source


def test_operands_in_registers_and_rows_of_tiles(tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((128, 64), "float16")
        A_local = T.alloc_fragment((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        ready = T.alloc_barrier(128)
        with T.ws(1):
            T.clear(C_local)
        for ko in range(T.ceildiv(K, 64)):
            with T.ws(1):
                T.copy(A[by * 64, ko * 64], A_shared)
                T.copy(A_shared, A_local)
                T.copy(B[ko * 64, bx * 64], B_shared[64:128, :])
                T.wgmma_gemm(A_local, B_shared[64:128, :], C_local)
                T.wait_wgmma(0)
        with T.ws(1):
            T.barrier_arrive(ready)
            T.barrier_wait(ready, 0)
            T.copy(C_local, C[by * 64, bx * 64])
    """
    kernel = gemm(tmp_path, statements)
    a, b = operands()
    np.testing.assert_array_equal(kernel(a, b), product(a, b))
    assert "tl::gemm_start(A_local, tl::rows<64>(B_shared, 64), C_local)" in kernel_text(kernel)


def test_products_that_wgmma_does_not_take_run_on_mma_sync(tmp_path: Path) -> None:
    statements = STEPS.replace("(2, 64, 128)", "(2, 32, 128)").replace("(64, 64)", "(32, 64)")
    statements = statements.replace("by * 64", "by * 32")
    kernel = load_body(
        tmp_path,
        statements,
        GEMM,
        grid="T.ceildiv(N, 64), T.ceildiv(M, 32)",
        blocks="(bx, by)",
        arguments="M, N, K",
        threads=256,
        target="cuda:sm_90a",
    )
    a, b = operands()
    np.testing.assert_array_equal(kernel(a, b), product(a, b))
    text = " ".join(line.strip(" /") for line in kernel.source.splitlines())
    assert "waited for immediately: the GEMM of line" in text and "takes 64 rows per warpgroup" in text
