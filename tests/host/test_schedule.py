"""T.PersistentTileScheduler: each tile once, in the order it promises, and a persistent product written with it."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body

RNG = np.random.default_rng(0)

ORDER = """
    sched = T.PersistentTileScheduler(m, n, num_workers=3, swizzle_size={swizzle}, column_major={major}, name="mine")
    sched.init(bx)
    while sched.valid():
        O[sched.m_idx, sched.n_idx] = sched.current_iter * 3 + bx + 1
        sched.next_tile()
"""

DECODED = """
    sched = T.PersistentTileScheduler(m, n, num_workers=3, swizzle_size={swizzle}, column_major={major}, stateful=False)
    for w in range(T.ceildiv(m * n, 3)):
        row, column = sched.coord(3 * w + bx)
        if row < m and column < n and 3 * w + bx < m * n:
            O[row, column] = 3 * w + bx + 1
"""


def order(m: int, n: int, swizzle: int, by_column: bool) -> np.ndarray:
    """When each tile's turn comes: panels of lines, each panel gone through across, from 1."""
    found = np.zeros((n, m) if by_column else (m, n), np.int32)
    lines, length = found.shape
    turn = 0
    for first in range(0, lines, swizzle):
        for along in range(length):
            for line in range(first, min(first + swizzle, lines)):
                turn += 1
                found[line, along] = turn
    return found.T if by_column else found


@pytest.mark.parametrize(
    ("statements", "major", "shape", "swizzle"),
    [(ORDER, True, (5, 4), 1), (ORDER, True, (5, 7), 3), (ORDER, False, (5, 7), 3), (DECODED, False, (3, 5), 2)],
    ids=["columns", "panels-of-columns", "panels-of-rows", "coord"],
)
def test_order(statements: str, major: bool, shape: tuple[int, int], swizzle: int, tmp_path: Path) -> None:
    m, n = shape
    kernel = load_body(
        tmp_path,
        statements.format(swizzle=swizzle, major=major),
        'O: T.Tensor((m, n), "int32")',
        grid="3",
        threads=1,
        arguments="m, n",
        m=m,
        n=n,
    )
    np.testing.assert_array_equal(kernel(), order(m, n, swizzle, major))


PRODUCT = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def product(M, N, K, workers, swizzle, by_column, block_M=64, block_N=32, block_K=32):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(workers, threads=128) as worker:
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            sched = T.PersistentTileScheduler(
                T.ceildiv(M, block_M), T.ceildiv(N, block_N), workers, swizzle_size=swizzle, column_major=by_column
            )
            sched.init(worker)
            while sched.valid():
                bx, by = sched.m_idx, sched.n_idx
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                    T.copy(A[bx * block_M, k * block_K], A_shared)
                    T.copy(B[k * block_K, by * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C[bx * block_M, by * block_N])
                sched.next_tile()
    return main
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("target", "swizzle", "by_column", "sizes"),
    [
        ("cuda:sm_80", 2, True, {}),
        ("cuda:sm_90a", 2, False, {"M": 200, "N": 120, "K": 104}),
        ("hip:gfx942", 1, True, {"M": 200, "N": 120, "K": 104}),
    ],
)
def test_persistent_product(target: str, swizzle: int, by_column: bool, sizes: dict[str, int], tmp_path: Path) -> None:
    path = tmp_path / "product.py"
    path.write_text(PRODUCT, encoding="utf-8")
    kernel = tile2cu.load(
        path, device="cpu", target=target, check=True, workers=5, swizzle=swizzle, by_column=by_column, **sizes
    )
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((200, 104), (104, 120)))
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64))


BY_GROUPS = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def product(M, N, K, workers, swizzle=2, block_M=128, block_N=64, block_K=32, stages=2):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(workers, threads=256) as worker:
            A_shared = T.alloc_shared((stages, block_M, block_K), "float16")
            B_shared = T.alloc_shared((stages, block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            ready = T.alloc_barrier([128] * stages)
            done = T.alloc_barrier([128] * stages)
            k_blocks = T.ceildiv(K, block_K)
            sched = T.PersistentTileScheduler(
                T.ceildiv(M, block_M), T.ceildiv(N, block_N), workers, swizzle_size=swizzle
            )
            sched.init(worker)
            with T.ws(1):
                while sched.valid():
                    bx, by = sched.m_idx, sched.n_idx
                    for k in T.serial(k_blocks):
                        turn = sched.current_iter * k_blocks + k
                        T.barrier_wait(done[turn % stages], (turn // stages) % 2 ^ 1)
                        slot = turn % stages
                        T.tma_copy(A[bx * block_M, k * block_K], A_shared[slot, :, :], barrier=ready[slot])
                        T.tma_copy(B[k * block_K, by * block_N], B_shared[slot, :, :], barrier=ready[slot])
                        T.barrier_arrive(ready[slot])
                    sched.next_tile()
            with T.ws(0):
                while sched.valid():
                    bx, by = sched.m_idx, sched.n_idx
                    T.clear(C_local)
                    for k in T.serial(k_blocks):
                        turn = sched.current_iter * k_blocks + k
                        T.barrier_wait(ready[turn % stages], (turn // stages) % 2)
                        T.gemm(A_shared[turn % stages, :, :], B_shared[turn % stages, :, :], C_local)
                        T.barrier_arrive(done[turn % stages])
                    T.copy(C_local, C[bx * block_M, by * block_N])
                    sched.next_tile()
    return main
"""


def test_each_group_goes_through_the_tiles_by_itself(tmp_path: Path) -> None:
    """One loads, one multiplies; the turn of the scheduler says which phase of the barriers it is."""
    path = tmp_path / "product.py"
    path.write_text(BY_GROUPS, encoding="utf-8")
    kernel = tile2cu.load(path, device="cpu", target="cuda:sm_90a", check=True, workers=3)
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((300, 72), (72, 136)))
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64))
