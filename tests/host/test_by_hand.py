"""Pipelines that the user writes by hand: groups of threads, memory barriers, TMA copies, named barriers."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel, LaunchError

RNG = np.random.default_rng(0)
GEMM = 'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")'
ONE_SLOT = """
    A_shared = T.alloc_shared((64, 32), "float16")
    B_shared = T.alloc_shared((32, 64), "float16")
    C_local = T.alloc_fragment((64, 64), "float32")
    ready = T.alloc_barrier(arrive_count=128)
    done = T.alloc_barrier(arrive_count=128)
    with T.ws({consumer}):
        T.clear(C_local)
    for ko in T.Pipelined(T.ceildiv(K, 32), num_stages={stages}):
        with T.ws({producer}):
            T.barrier_wait(done, (ko + 1) % 2)
            T.tma_copy(A[by * 64, ko * 32], A_shared, barrier=ready)
            T.tma_copy(B[ko * 32, bx * 64], B_shared, barrier=ready)
            T.barrier_arrive(ready)
        with T.ws({consumer}):
            T.barrier_wait(ready, ko % 2)
            T.gemm(A_shared, B_shared, C_local)
            T.barrier_arrive(done)
    with T.ws({consumer}):
        T.copy(C_local, C[by * 64, bx * 64])
"""
RING = """
    A_shared = T.alloc_shared((2, 64, 32), "float16")
    B_shared = T.alloc_shared((2, 32, 64), "float16")
    C_local = T.alloc_fragment((64, 64), "float32")
    bars = T.alloc_barrier([128, 128, 128, 128])
    with T.ws(0):
        T.clear(C_local)
    for ko in range(T.ceildiv(K, 32)):
        with T.ws(1):
            T.mbarrier_wait_parity(mbarrier=bars[ko % 2 + 2], parity=((ko // 2) % 2) ^ 1)
            T.tma_copy(A[by * 64 : by * 64 + 64, ko * 32 : ko * 32 + 32], A_shared[ko % 2, :, :], barrier=bars[ko % 2])
            T.tma_copy(B[ko * 32 : ko * 32 + 32, bx * 64 : bx * 64 + 64], B_shared[ko % 2, :, :], barrier=bars[ko % 2])
            T.mbarrier_arrive(mbarrier=bars[ko % 2])
        with T.ws(0):
            T.mbarrier_wait_parity(mbarrier=bars[ko % 2], parity=(ko // 2) % 2)
            T.gemm(A_shared[ko % 2, :, :], B_shared[ko % 2, :, :], C_local)
            T.mbarrier_arrive(mbarrier=bars[ko % 2 + 2])
    with T.ws(0):
        T.copy(C_local, C[by * 64, bx * 64])
"""


def gemm(folder: Path, statements: str, *, target: str = "cuda:sm_90a", threads: int = 256) -> Kernel:
    return load_body(
        folder,
        statements,
        GEMM,
        grid="T.ceildiv(N, 64), T.ceildiv(M, 64)",
        blocks="(bx, by)",
        arguments="M, N, K",
        threads=threads,
        target=target,
    )


def operands(m: int = 100, n: int = 72, k: int = 88) -> tuple[np.ndarray, np.ndarray]:
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    return a, b


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("producer", "consumer", "stages"), [(0, 1, 0), (1, 0, 2)])
def test_one_group_copies_and_one_multiplies(producer: int, consumer: int, stages: int, tmp_path: Path) -> None:
    kernel = gemm(tmp_path, ONE_SLOT.format(producer=producer, consumer=consumer, stages=stages))
    a, b = operands()
    np.testing.assert_array_equal(kernel(a, b), product(a, b))
    assert "sync_threads" not in kernel.source.partition("__global__")[2], "the user's barriers are enough"


def test_products_that_the_user_waits_for(tmp_path: Path) -> None:
    statements = ONE_SLOT.format(producer=0, consumer=1, stages=0)
    product_ = "T.gemm(A_shared, B_shared, C_local)"
    awaited = "T.wgmma_gemm(A_shared, B_shared, C_local)\n            T.wait_wgmma(0)"
    kernel = gemm(tmp_path, statements.replace(product_, awaited))
    a, b = operands()
    np.testing.assert_array_equal(kernel(a, b), product(a, b))
    assert "tl::gemm_start(A_shared, B_shared, C_local);" in kernel.source
    assert "tl::gemm_wait<0>(C_local);" in kernel.source


def test_a_ring_of_slots(tmp_path: Path) -> None:
    a, b = operands()
    np.testing.assert_array_equal(gemm(tmp_path, RING)(a, b), product(a, b))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("left_out", "finding"),
    [
        ("T.barrier_wait(ready, ko % 2)", "race|in-flight|uninitialised"),
        ("T.barrier_wait(done, (ko + 1) % 2)", "race|in-flight|over-arrival"),
        ("T.barrier_arrive(done)", "deadlock"),
    ],
)
def test_the_engine_finds_a_barrier_that_is_left_out(left_out: str, finding: str, tmp_path: Path) -> None:
    statements = ONE_SLOT.format(producer=0, consumer=1, stages=0)
    assert statements.count(left_out) == 1
    kernel = gemm(tmp_path, statements.replace(left_out, "pass"))
    with pytest.raises((CheckError, LaunchError), match=finding):
        kernel(*operands())


def test_a_barrier_that_counts_too_many_is_a_deadlock(tmp_path: Path) -> None:
    statements = ONE_SLOT.format(producer=0, consumer=1, stages=0).replace("arrive_count=128", "arrive_count=129", 1)
    with pytest.raises((CheckError, LaunchError), match="deadlock"):
        gemm(tmp_path, statements)(*operands())


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_groups_that_share_a_tile_meet_at_barriers_of_the_block(target: str, tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((64, 32), "float16")
        B_0 = T.alloc_shared((32, 32), "float16")
        B_1 = T.alloc_shared((32, 32), "float16")
        C_0 = T.alloc_fragment((64, 32), "float32")
        C_1 = T.alloc_fragment((64, 32), "float32")
        with T.ws(1):
            T.clear(C_1)
        with T.ws(0):
            T.clear(C_0)
        for ko in T.Pipelined(T.ceildiv(K, 32), num_stages=0):
            T.copy(A[by * 64, ko * 32], A_shared)
            with T.ws(1):
                T.copy(B[ko * 32, bx * 64], B_1)
                T.gemm(A_shared, B_1, C_1)
            with T.ws(0):
                T.copy(B[ko * 32, bx * 64 + 32], B_0)
                T.gemm(A_shared, B_0, C_0)
        with T.ws(1):
            T.copy(C_1, C[by * 64, bx * 64])
        with T.ws(0):
            T.copy(C_0, C[by * 64, bx * 64 + 32])
    """
    kernel = gemm(tmp_path, statements, target=target)
    a, b = operands()
    np.testing.assert_array_equal(kernel(a, b), product(a, b))
    body = kernel.source.partition("__global__")[2]
    assert body.count("tl::sync_block();") == 2  # A_shared was written; it is written again
    assert body.count("tl::sync_threads();") == 2  # B_0 and B_1 were written, by their group


def test_what_all_groups_come_to_is_done_once(tmp_path: Path) -> None:
    """A loop outside of T.ws reads other threads' elements of a fragment: through shared memory, by one group."""
    statements = """
        F = T.alloc_fragment((64, 64), "float32")
        G = T.alloc_fragment((64, 64), "float32")
        for k in T.serial(3):
            T.copy(X[bx * 64, 0], F)
            for i, j in T.Parallel(64, 64):
                G[i, j] = F[j, i] + k
            with T.ws(1):
                T.copy(G, Y[k, bx * 64, 0])
    """
    params = 'X: T.Tensor((M, 64), "float32"), Y: T.Tensor((3, M, 64), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="M // 64", arguments="M", threads=256, M=128)
    x = RNG.standard_normal((128, 64)).astype(np.float32)
    turned = x.reshape(2, 64, 64).transpose(0, 2, 1).reshape(128, 64)
    np.testing.assert_array_equal(kernel(x), turned + np.arange(3, dtype=np.float32)[:, None, None])


def test_all_threads_wait_for_tma(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((64, 64), "float32")
        first = T.alloc_barrier(1)
        tx = T.get_thread_binding()
        T.tma_copy(X[bx * 64, 0], S, barrier=first)
        if tx == 0:
            T.barrier_arrive(first)
        T.barrier_wait(first, 0)
        for i, j in T.Parallel(64, 64):
            S[i, j] = S[i, j] * 2.0
        T.copy(S, Y[bx * 64, 0])
    """
    params = 'X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M, 64), "float32")'
    kernel = load_body(
        tmp_path, statements, params, grid="T.ceildiv(M, 64)", arguments="M", target="cuda:sm_90a", threads=64
    )
    x = RNG.standard_normal((100, 64)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x * 2)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_named_barriers(target: str, tmp_path: Path) -> None:
    """One warp hands values to another through shared memory, turn by turn; a third has nothing to do with it."""
    statements = """
        S = T.alloc_shared((32,), "float32")
        tx = T.get_thread_binding()
        for k in T.serial(5):
            if tx < 32:
                T.sync_threads(2, 64)
                S[tx] = X[k, tx]
                T.named_barrier_arrive(1, 64)
            elif tx < 64:
                T.named_barrier_arrive(2, 64)
                T.sync_threads(1, 64)
                Y[k, tx - 32] = S[63 - tx]
    """
    params = 'X: T.Tensor((5, 32), "float32"), Y: T.Tensor((5, 32), "float32")'
    x = RNG.standard_normal((5, 32)).astype(np.float32)
    kernel = load_body(tmp_path, statements, params, target=target, threads=96)
    np.testing.assert_array_equal(kernel(x), x[:, ::-1])


def test_copies_of_cp_async(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((2, 64, 8), "float16")
        tx = T.get_thread_binding()
        for k in T.serial(3):
            source = T.access_ptr(X[bx * 64 + tx, k * 8], "r", 8)
            T.ptx_cp_async(T.access_ptr(S[k % 2, tx, 0], "w", 8), source, 8, tx < 50)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            for i, j in T.Parallel(64, 8):
                Y[bx * 64 + i, k * 8 + j] = S[k % 2, 63 - i, j]
    """
    params = 'X: T.Tensor((M, 24), "float16"), Y: T.Tensor((M, 24), "float16")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 64)", arguments="M", threads=64, M=100)
    x = RNG.integers(-9, 10, (100, 24)).astype(np.float16)
    read = np.zeros((128, 24), np.float16)
    read[:100] = x
    read = read.reshape(2, 64, 24)
    read[:, 50:] = 0
    np.testing.assert_array_equal(kernel(x), read[:, ::-1].reshape(128, 24)[:100])


def test_the_engine_finds_a_copy_that_nobody_waited_for(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((64, 8), "float16")
        tx = T.get_thread_binding()
        T.ptx_cp_async(T.access_ptr(S[tx, 0], "w", 8), T.access_ptr(X[tx, 0], "r", 8), 8)
        T.ptx_commit_group()
        T.copy(S, Y)
    """
    params = 'X: T.Tensor((64, 8), "float16"), Y: T.Tensor((64, 8), "float16")'
    kernel = load_body(tmp_path, statements, params, threads=64)
    with pytest.raises((CheckError, LaunchError), match="in-flight"):
        kernel(np.ones((64, 8), np.float16))


COPY = """T.ptx_cp_async(
                    T.access_ptr(A_shared[ko % 2, r * 16 + (tx - 256) // 8, (tx - 256) % 8 * 8], "w", 8),
                    T.access_ptr(A[row, (tx - 256) % 8 * 8], "r", 8),
                    8,
                )"""
ASYNC_SCOPE = """if row >= 0:
                    with T.attr("default", "async_scope", 1):
                        for u in T.serial(2):
                            for v in T.vectorized(4):
                                A_shared[ko % 2, r * 16 + (tx - 256) // 8, v + (tx - 256) % 8 * 8 + u * 4] = A[
                                    row, (tx - 256) % 8 * 8 + u * 4 + v
                                ]"""
GATHER = """
    A_shared = T.alloc_shared((2, 64, 64), "float16")
    B_shared = T.alloc_shared((64, 128), "float16")
    C_l = T.alloc_fragment((64, 64), "float32")
    C_r = T.alloc_fragment((64, 64), "float32")
    row = T.alloc_var("int32")
    there = T.alloc_barrier(128)
    ready = T.alloc_barrier([128, 128])
    free = T.alloc_barrier([256, 256])
    tx = T.get_thread_binding()
    T.tma_copy(B[0, 0], B_shared, barrier=there)
    if tx < 128:
        T.barrier_arrive(there)
        T.barrier_wait(there, 0)
        for ko in T.serial(4):
            T.barrier_wait(ready[ko % 2], ko // 2)
            T.gemm(A_shared[ko % 2, :, :], B_shared[:, :64], C_l, clear_accum=(ko == 0))
            T.barrier_arrive(free[ko % 2])
        T.copy(C_l, C[bx * 64, 0])
    elif tx >= 128 and tx < 256:
        T.barrier_wait(there, 0)
        for ko in T.serial(4):
            T.barrier_wait(ready[ko % 2], ko // 2)
            T.gemm(A_shared[ko % 2, :, :], B_shared[:, 64:], C_r, clear_accum=(ko % 4 == 0))
            T.barrier_arrive(free[ko % 2])
        T.copy(C_r, C[bx * 64, 64])
    elif tx >= 256:
        for ko in T.serial(4):
            T.barrier_wait(free[ko % 2], ko // 2 ^ 1)
            for r in T.serial(4):
                row = Rows[bx * 64 + r * 16 + (tx - 256) // 8, ko]
                {copy}
            T.cp_async_barrier_noinc(ready[ko % 2])
"""


def gather(folder: Path, statements: str = GATHER, copy: str = COPY) -> Kernel:
    """Sums of four rows each that one group gathers, times B: its halves by two other groups."""
    params = 'A: T.Tensor((K, 64), "float16"), Rows: T.Tensor((M, 4), "int32"), '
    params += 'B: T.Tensor((64, 128), "float16"), C: T.Tensor((M, 128), "float32")'
    options = {"grid": "T.ceildiv(M, 64)", "arguments": "M, K", "threads": 384, "target": "cuda:sm_90a"}
    return load_body(folder, statements.replace("{copy}", copy), params, M=128, **options)


def gathered() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((70, 64), (64, 128)))
    return a, RNG.integers(0, 70, (128, 4)).astype(np.int32), b


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("copy", [COPY, ASYNC_SCOPE], ids=["ptx_cp_async", "async_scope"])
def test_one_group_gathers_rows_for_two(copy: str, tmp_path: Path) -> None:
    kernel = gather(tmp_path, copy=copy)
    a, rows, b = gathered()
    expected = a.astype(np.float64)[rows].sum(axis=1) @ b.astype(np.float64)
    np.testing.assert_array_equal(kernel(a, rows, b), expected)
    body = kernel.source.partition("__global__")[2]
    assert f"tl::cp_async<{16 if copy == COPY else 8}>" in body and "tl::cp_async_arrive(ready[ko % 2]);" in body
    assert "sync_threads" not in body
    assert body.count("tl::sync_block();") == 1, "for the barriers; the rest is handed over by them"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("left_out", "finding"),
    [
        ("T.barrier_wait(ready[ko % 2], ko // 2)", "race|in-flight|uninitialised"),
        ("T.barrier_wait(free[ko % 2], ko // 2 ^ 1)", "race|in-flight|over-arrival|deadlock"),
        ("T.cp_async_barrier_noinc(ready[ko % 2])", "deadlock"),
        ("T.barrier_arrive(free[ko % 2])", "deadlock"),
    ],
)
def test_the_engine_finds_what_is_left_out_of_a_gather(left_out: str, finding: str, tmp_path: Path) -> None:
    kernel = gather(tmp_path, GATHER.replace(left_out, "pass", 1))
    with pytest.raises((CheckError, LaunchError), match=finding):
        kernel(*gathered())


PANELS = """
    A_shared = T.alloc_shared((64, 128), "float16")
    B_shared = T.alloc_shared((128, 64), "float16")
    C_l = T.alloc_fragment((64, 64), "float32")
    there = T.alloc_barrier([128, 128])
    tx = T.get_thread_binding()
    if tx < 128:
        for ko in T.serial(T.ceildiv(K, 128)):
            for j in T.unroll(2):
                T.tma_copy(
                    A[by * 64 : by * 64 + 64, ko * 128 + j * 64 : ko * 128 + (j + 1) * 64],
                    A_shared[:, j * 64 : (j + 1) * 64],
                    barrier=there[j],
                )
                T.barrier_arrive(there[j])
            T.copy(B[ko * 128, bx * 64], B_shared)
            for j in T.unroll(2):
                T.barrier_wait(there[j], ko % 2)
                B_rows = B_shared[j * 64 : (j + 1) * 64, :]
                T.gemm(A_shared[:, j * 64 : (j + 1) * 64], B_rows, C_l, clear_accum=(ko + j == 0))
        T.copy(C_l, C[by * 64, bx * 64])
    else:
        if tx == 128:
            T.fence_proxy_async()
"""


def test_tma_fills_panels_when_their_group_is_done_with_them(tmp_path: Path) -> None:
    kernel = gemm(tmp_path, PANELS)
    a, b = operands(m=100, n=72, k=328)
    np.testing.assert_array_equal(kernel(a, b), product(a, b))
    body = kernel.source.partition("__global__")[2]
    assert "tl::tma_copy(A_map, tl::at(by * 64, ko * 128 + j * 64), tl::cols<64>(A_shared, j * 64), there[j]);" in body
    first = body.index("tl::tma_copy")
    awaited = "WAR: all threads have read A_shared" in body[:first]
    assert awaited, "threads may still multiply what TMA would overwrite"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("stages", [1, 3])
def test_a_pipelined_loop_with_barriers_of_the_users_runs_as_it_is_written(stages: int, tmp_path: Path) -> None:
    """One tile, filled and awaited in each turn by all threads: nothing in it runs ahead."""
    kernel = load_body(
        tmp_path,
        f"""
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((32, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        ready = T.alloc_barrier(128)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages={stages}):
            T.tma_copy(A[by * 64, k * 32], A_shared, barrier=ready)
            T.tma_copy(B[k * 32, bx * 64], B_shared, barrier=ready)
            T.barrier_arrive(ready)
            T.barrier_wait(ready, k % 2)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * 64, bx * 64])
        """,
        GEMM,
        grid="T.ceildiv(N, 64), T.ceildiv(M, 64)",
        blocks="(bx, by)",
        arguments="M, N, K",
        target="cuda:sm_90a",
    )
    a, b = operands()
    np.testing.assert_array_equal(kernel(a, b), product(a, b))
    body = kernel.source.partition("__global__")[2]
    assert "tl::tma_copy(A_map" in body and "tl::pipeline" not in body


STORED = """
    S = T.alloc_shared((2, 64, 128), "float32")
    L = T.alloc_fragment((64, 128), "float32")
    for k in range(T.ceildiv(N, 128)):
        T.copy(X[bx * 64, k * 128], L)
        for i, j in T.Parallel(64, 128):
            L[i, j] = L[i, j] * 2 + j
        T.tma_store_wait(1)
        T.copy(L, S[k % 2, :, :])
        T.tma_copy(S[k % 2, :, :], Y[bx * 64, k * 128])
    T.tma_store_wait(0, read={read})
"""


def stored(folder: Path, statements: str, *, target: str = "cuda:sm_90a") -> Kernel:
    params = 'X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")'
    return load_body(folder, statements, params, grid="T.ceildiv(M, 64)", arguments="M, N", target=target)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("read", [True, False])
def test_stores_by_hand_stay_in_flight_for_a_turn(read: bool, tmp_path: Path) -> None:
    """What lies outside of the tensor is dropped; one thread waits, and the others learn of it at a barrier."""
    kernel = stored(tmp_path, STORED.format(read=read))
    x = RNG.standard_normal((100, 420)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x * np.float32(2) + np.arange(420, dtype=np.float32) % 128)
    body = kernel.source.partition("__global__")[2]
    assert "tl::tma_copy(S[k % 2], Y_map, tl::at(bx * 64, k * 128));" in body
    assert body.index("block_tma_store_wait_read<1>") < body.index("tl::sync_threads") < body.index("tl::copy(L, S")
    assert body.count("tl::fence_async_proxy();") == 1 and "TMA does not read as threads do" in body
    assert ("block_tma_store_wait_read<0>" in body) is read and "Y_data" not in body


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("written", "instead", "finding"),
    [
        ("    T.tma_store_wait(0, read=True)", "    pass", "TMA store never waited"),
        ("T.tma_store_wait(1)", "T.tma_store_wait(2)", "race"),
    ],
)
def test_the_engine_finds_a_wait_for_stores_that_is_left_out(
    written: str, instead: str, finding: str, tmp_path: Path
) -> None:
    statements = STORED.format(read=True)
    assert statements.count(written) == 1
    kernel = stored(tmp_path, statements.replace(written, instead))
    with pytest.raises((CheckError, LaunchError), match=finding):
        kernel(np.ones((64, 512), np.float32))


def test_columns_of_a_tile_that_tma_loaded_are_stored_in_two_groups(tmp_path: Path) -> None:
    """The second half leaves first, and as two groups: its own, and an empty one."""
    kernel = stored(
        tmp_path,
        """
        S = T.alloc_shared((64, 64), "float32")
        there = T.alloc_barrier(128)
        for k in range(T.ceildiv(N, 64)):
            T.tma_copy(X[bx * 64, k * 64], S, barrier=there)
            T.barrier_arrive(there)
            T.barrier_wait(there, k % 2)
            T.tma_copy(S[:, 32:64], Y[bx * 64, k * 64 + 32])
            T.tma_store_arrive()
            T.tma_copy(S[:, 0:32], Y[bx * 64, k * 64])
            T.tma_store_wait()
        """,
    )
    x = RNG.standard_normal((72, 148)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x)
    assert "tl::tma_copy(tl::cols<32>(S, 32), Y_map, tl::at(bx * 64, k * 64 + 32));" in kernel.source
    assert "tl::fence_async_proxy" not in kernel.source.partition("__global__")[2]


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("chip", ["cuda:sm_90a", "cuda:sm_100a"])
def test_the_result_of_a_pipelined_product_leaves_by_hand(chip: str, tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((32, 64), "float16")
        C_shared = T.alloc_shared((64, 64), "float32")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
            T.copy(A[by * 64, k * 32], A_shared)
            T.copy(B[k * 32, bx * 64], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C_shared)
        T.tma_copy(C_shared, C[by * 64, bx * 64])
        T.tma_store_wait()
    """
    a, b = operands()
    kernel = gemm(tmp_path, statements, threads=128, target=chip)
    np.testing.assert_array_equal(kernel(a, b), product(a, b))
    assert "tl::tma_copy(C_shared, C_map, tl::at(by * 64, bx * 64));" in kernel.source
    assert "tl::sync_consumers<threads>();" in kernel.source, "a barrier with a fence"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1024), (1, 1000), (4, 64), (12, 128)])
def test_tma_moves_tiles_whose_rows_do_not_come_in_eights(rows: int, columns: int, tmp_path: Path) -> None:
    """Its swizzle is one of addresses, in a pattern of eight rows; a single row takes several boxes of 256 elements."""
    kernel = load_body(
        tmp_path,
        f"""
        S = T.alloc_shared((2, {rows}, {columns}), "float32")
        there = T.alloc_barrier(128)
        T.tma_copy(X[bx * {rows} : (bx + 1) * {rows}, 0:{columns}], S[1, :, :], barrier=there)
        T.barrier_arrive(there)
        T.barrier_wait(there, 0)
        for i, j in T.Parallel({rows}, {columns}):
            S[0, i, j] = S[1, i, j] + j
        T.tma_copy(S[0, :, :], Y[bx * {rows} : (bx + 1) * {rows}, 0:{columns}])
        T.tma_store_wait()
        """,
        'X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")',
        grid=f"T.ceildiv(M, {rows})",
        arguments="M, N",
        target="cuda:sm_90a",
    )
    x = RNG.standard_normal((2 * rows + 1, columns - 4)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x + np.arange(columns - 4, dtype=np.float32))
    assert f"tl::SharedTile<float, {rows}, {columns}, tl::NoSwizzle>" in kernel.source


@pytest.mark.nightly
def test_a_pipelined_tile_whose_rows_do_not_come_in_eights(tmp_path: Path) -> None:
    """A producer's TMA would swizzle it: the threads load by themselves."""
    statements = """
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((32, 64), "float16")
        S = T.alloc_shared((4, 32), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
            T.copy(A[by * 64, k * 32], A_shared)
            T.copy(B[k * 32, bx * 64], B_shared)
            T.copy(A[by * 64, k * 32], S)
            T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(64, 64):
                C_local[i, j] += T.cast(S[i % 4, j % 32], "float32")
        T.copy(C_local, C[by * 64, bx * 64])
    """
    a, b = operands(64, 64, 64)
    more = a[:4].astype(np.float64).reshape(4, 2, 32).sum(1)
    np.testing.assert_array_equal(gemm(tmp_path, statements, threads=128)(a, b), product(a, b) + np.tile(more, (16, 2)))
