"""Groups of threads of different sizes: T.ws of several warpgroups, and branches with unequal shares."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body
from tile2cu_runtime import Kernel

RNG = np.random.default_rng(0)
GEMM = 'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")'
PRODUCER = """
    A_shared = T.alloc_shared((2, 128, 32), "float16")
    B_shared = T.alloc_shared((2, 32, 64), "float16")
    C_local = T.alloc_fragment((128, 64), "float32")
    ready = T.alloc_barrier([128, 128])
    done = T.alloc_barrier([256, 256])
    {first}
    for ko in range(T.ceildiv(K, 32)):
        with T.ws({producer}):
            T.barrier_wait(done[ko % 2], ko // 2 % 2 ^ 1)
            T.tma_copy(A[by * 128, ko * 32], A_shared[ko % 2, :, :], barrier=ready[ko % 2])
            T.tma_copy(B[ko * 32, bx * 64], B_shared[ko % 2, :, :], barrier=ready[ko % 2])
            T.barrier_arrive(ready[ko % 2])
        with T.ws({consumers}):
            T.barrier_wait(ready[ko % 2], ko // 2 % 2)
            T.gemm(A_shared[ko % 2, :, :], B_shared[ko % 2, :, :], C_local)
            T.barrier_arrive(done[ko % 2])
    {last}
"""
ROWS = """
    S = T.alloc_shared((16, 256), "float32")
    part = T.alloc_fragment((16, 256), "float32")
    total = T.alloc_fragment((16,), "float32")
    least = T.alloc_shared((16,), "float32")
    tx = T.get_thread_binding()
    T.copy(X[bx * 16, 0], S)
    if tx < {split}:
        T.copy(S, part)
        T.reduce_sum(part, total, dim=1)
        for i in T.Parallel(16):
            Y[bx * 16 + i, 0] = total[i]
        Z[bx, tx] = tx
    else:
        T.copy(S, part)
        T.reduce_min(part, total, dim=1)
        T.copy(total, least)
        for i in T.Parallel(16):
            Y[bx * 16 + i, 1] = least[i] * 2
        Z[bx, tx] = tx * 2
"""


def gemm(folder: Path, statements: str, *, threads: int = 384) -> Kernel:
    return load_body(
        folder,
        statements,
        GEMM,
        grid="T.ceildiv(N, 64), T.ceildiv(M, 128)",
        blocks="(bx, by)",
        arguments="M, N, K",
        threads=threads,
        target="cuda:sm_90a",
    )


def operands(m: int = 200, n: int = 72, k: int = 120) -> tuple[np.ndarray, np.ndarray]:
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    return a, b


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("producer", "consumers"), [("0", "1, 2"), ("2", "0, 1"), ("1", "2, 3")])
@pytest.mark.parametrize("inside", [True, False], ids=["by the group", "by all"])
def test_one_group_loads_for_one_twice_as_large(producer: str, consumers: str, inside: bool, tmp_path: Path) -> None:
    """What all groups come to and meets the accumulator is done by those that hold it."""
    clear, store = "T.clear(C_local)", "T.copy(C_local, C[by * 128, bx * 64])"
    if inside:
        clear, store = (f"with T.ws({consumers}):\n        {line}" for line in (clear, store))
    statements = PRODUCER.format(producer=producer, consumers=consumers, first=clear, last=store)
    kernel = gemm(tmp_path, statements, threads=512 if "3" in consumers else 384)
    a, b = operands()
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64))
    assert "tl::WgmmaAccumulator<128, 64, 2>" in kernel.source
    assert "sync_block" not in kernel.source.partition("blockIdx.y;")[2], "the user's barriers are enough"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("other", ["1", "1, 2"], ids=["of one size", "of two sizes"])
def test_a_group_keeps_its_fragment_while_another_writes_one_of_that_name(
    target: str, other: str, tmp_path: Path
) -> None:
    statements = f"""
        F = T.alloc_fragment((64, 64), "float32")
        S = T.alloc_shared((64, 64), "float32")
        with T.ws(0):
            T.copy(A, F)
            T.copy(F, S)
        with T.ws({other}):
            T.copy(B, F)
            for i, j in T.Parallel(64, 64):
                F[i, j] = F[i, j] + S[j, i]
            T.copy(F, Out)
        for i, j in T.Parallel(64, 64):
            F[i, j] = F[i, j] * 2
        with T.ws(0):
            T.copy(F, Kept)
    """
    params = ", ".join(f'{name}: T.Tensor((64, 64), "float32")' for name in ("A", "B", "Kept", "Out"))
    threads = 128 * (2 + other.count(","))
    kernel = load_body(tmp_path, statements, params, threads=threads, target=target)
    a, b = (RNG.integers(-9, 10, (64, 64)).astype(np.float32) for _ in "ab")
    kept = np.zeros((64, 64), np.float32)
    np.testing.assert_array_equal(kernel(a, b, kept), b + a.T)
    np.testing.assert_array_equal(kept, 2 * a)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize(("split", "threads"), [(64, 192), (128, 192), (32, 128)])
def test_branches_of_unequal_shares(target: str, split: int, threads: int, tmp_path: Path) -> None:
    """Each group reduces a fragment of the same name by itself, of other elements in its threads."""
    params = f'X: T.Tensor((M, 256), "float32"), Z: T.Tensor((4, {threads}), "int32"), Y: T.Tensor((M, 2), "float32")'
    kernel = load_body(
        tmp_path,
        ROWS.format(split=split),
        params,
        grid="T.ceildiv(M, 16)",
        arguments="M",
        threads=threads,
        target=target,
    )
    x, z = RNG.integers(-99, 99, (50, 256)).astype(np.float32), np.zeros((4, threads), np.int32)
    y = kernel(x, z)
    np.testing.assert_array_equal(y, np.stack([x.sum(1), 2 * x.min(1)], 1))
    np.testing.assert_array_equal(z, np.tile(np.arange(threads) * np.where(np.arange(threads) < split, 1, 2), (4, 1)))
    assert f"constexpr int threads[] = {{{split}, {threads - split}}};" in kernel.source


def test_a_share_that_sets_registers_may_be_shared_out(tmp_path: Path) -> None:
    """A warpgroup that gives registers away, and whose warps each copy other rows."""
    statements = """
        S = T.alloc_shared((16, 64), "float32")
        L = T.alloc_fragment((16, 64), "float32")
        total = T.alloc_fragment((16,), "float32")
        ready = T.alloc_barrier(arrive_count=64)
        tx = T.get_thread_binding()
        if tx < 128:
            T.set_max_nreg(240, 1)
            T.barrier_wait(ready, 0)
            T.copy(S, L)
            T.reduce_sum(L, total, dim=1)
            T.copy(total, Y[bx * 16])
        else:
            T.set_max_nreg(24, 0)
            if tx < 160:
                T.copy(X[bx * 16 : bx * 16 + 8, 0:64], S[0:8, :])
                T.barrier_arrive(ready)
            elif tx < 192:
                T.copy(X[bx * 16 + 8 : bx * 16 + 16, 0:64], S[8:16, :])
                T.barrier_arrive(ready)
    """
    params = 'X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M,), "float32")'
    sizes = {"grid": "T.ceildiv(M, 16)", "arguments": "M", "threads": 256}
    kernel = load_body(tmp_path, statements, params, **sizes, target="cuda:sm_90a")
    x = RNG.integers(-9, 10, (40, 64)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x.sum(1))
    assert "constexpr int threads[] = {128, 32, 32, 64};" in kernel.source


@pytest.mark.nightly
def test_a_whole_block_is_one_group(tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((128, 32), "float16")
        B_shared = T.alloc_shared((32, 64), "float16")
        C_local = T.alloc_fragment((128, 64), "float32")
        with T.ws(0, 1):
            T.clear(C_local)
            for ko in range(T.ceildiv(K, 32)):
                T.copy(A[by * 128, ko * 32], A_shared)
                T.copy(B[ko * 32, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 128, bx * 64])
    """
    kernel = gemm(tmp_path, statements, threads=256)
    a, b = operands()
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64))
    assert "TL_GROUP" not in kernel.source


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_groups_within_groups(target: str, tmp_path: Path) -> None:
    """All load, two of three compute, one of these stores; its own statement is its own threads'."""
    statements = """
        S = T.alloc_shared((64, 64), "float32")
        L = T.alloc_fragment((64, 64), "float32")
        tx = T.get_thread_binding()
        with T.ws(0, 1, 2):
            row = bx * 64
            T.copy(X[row, 0], S)
        T.sync_threads()
        with T.ws(2):
            row = bx * 64 + 1
            T.copy(S[0:1, 0:64], Z[bx, 0:64])
        T.sync_threads()
        with T.ws(0, 1):
            T.copy(S, L)
            for i, j in T.Parallel(64, 64):
                L[i, j] = L[i, j] * 2
            T.copy(L, S)
            with T.ws(0):
                T.copy(S, Y[bx * 64, 0])
                N[bx, tx] = tx + 1
    """
    kernel = load_body(
        tmp_path,
        statements,
        'X: T.Tensor((M, 64), "float32"), Z: T.Tensor((2, 64), "float32"), N: T.Tensor((2, 384), "int32"), '
        'Y: T.Tensor((M, 64), "float32")',
        grid="T.ceildiv(M, 64)",
        arguments="M",
        threads=384,
        target=target,
    )
    x = RNG.integers(-9, 10, (100, 64)).astype(np.float32)
    z, n = np.zeros((2, 64), np.float32), np.zeros((2, 384), np.int32)
    np.testing.assert_array_equal(kernel(x, z, n), x * 2)
    np.testing.assert_array_equal(z, x[[0, 64]])
    np.testing.assert_array_equal(n[1], np.where(np.arange(384) < 128, np.arange(384) + 1, 0))
    assert "by the threads of T.ws(0, 1)" in kernel.source


AFTER = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def split_rows(N):
    @T.prim_func
    def main(X: T.Tensor((N, 64), "float32"), P: T.Tensor((N, 2, 64), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(N, threads=256) as bx:
            S = T.alloc_shared((2, 64), "float32")
            tx = T.get_thread_binding()
            with T.ws(0):
                for i in T.Parallel(64):
                    S[0, i] = X[bx, i] * 2
                for i in T.Parallel(64):
                    P[bx, 0, i] = S[0, 63 - i]
            with T.ws(1):
                for i in T.Parallel(64):
                    S[1, i] = X[bx, i] * 3
                for i in T.Parallel(64):
                    P[bx, 1, i] = S[1, 63 - i]
        with T.Kernel(N, threads=32) as bx:
            lane = T.get_thread_binding()
            sum_ = T.alloc_local((1,), "float32")
            sum_[0] = P[bx, 0, lane] + P[bx, 0, lane + 32] + P[bx, 1, lane] + P[bx, 1, lane + 32]
            for step in T.serial(5):
                sum_[0] += T.shfl_xor(sum_[0], 1 << step)
            if lane == 0:
                Y[bx] = sum_[0]

    return main
"""


def test_a_kernel_of_one_warp_after_one_of_groups(tmp_path: Path) -> None:
    path = tmp_path / "split_rows.py"
    path.write_text(AFTER, encoding="utf-8")
    kernel = tile2cu.load(path, device="cpu", target="cuda:sm_90a", check=True)
    x = RNG.integers(-9, 9, (5, 64)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x, np.zeros((5, 2, 64), np.float32)), 5 * x.sum(axis=1))
