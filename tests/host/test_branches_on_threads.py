"""Branches on the thread around operations on whole tiles, and barriers that the user writes all."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel

RNG = np.random.default_rng(0)
OWN_BARRIERS = """
import tilelang
import tilelang.language as T

{configs}
@tilelang.jit(out_idx=[-1], pass_configs={given})
def scattered(n):
    @T.prim_func
    def body(X: T.Tensor((n,), "int32"), Y: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=128) as bx:
            tx = T.get_thread_binding()
            found = T.alloc_shared((256,), "int32")
            count = T.alloc_shared((2,), "int32")
            at = T.alloc_var("int32")
            T.fill(count[1], 0)
            T.sync_threads()
            for i in T.serial(2):
                if X[i * 128 + tx] > 0:
                    at = T.atomic_add(count[1], 1, return_prev=True)
                    found[at] = X[i * 128 + tx]
            {barrier}
            for i in T.serial(2):
                Y[i * 128 + tx] = T.if_then_else(i * 128 + tx < count[1], found[i * 128 + tx], 0)
    return body
"""


def test_equal_shares_are_groups(tmp_path: Path) -> None:
    """Each half of the block multiplies by itself; what both read is there for both."""
    statements = """
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((32, 128), "float16")
        C_l = T.alloc_fragment((64, 64), "float32")
        C_r = T.alloc_fragment((64, 64), "float32")
        tx = T.get_thread_binding()
        T.clear(C_l)
        T.clear(C_r)
        for ko in T.serial(T.ceildiv(K, 32)):
            T.copy(A[by * 64, ko * 32], A_shared)
            T.copy(B[ko * 32, bx * 128], B_shared)
            if tx < 128:
                T.gemm(A_shared, B_shared[:, :64], C_l)
            else:
                T.gemm(A_shared, B_shared[:, 64:], C_r)
        if tx < 128:
            T.copy(C_l, C[by * 64, bx * 128])
        elif tx >= 128 and tx < 256:
            T.copy(C_r, C[by * 64, bx * 128 + 64])
    """
    kernel = load_body(
        tmp_path,
        statements,
        'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")',
        grid="T.ceildiv(N, 128), T.ceildiv(M, 64)",
        blocks="(bx, by)",
        arguments="M, N, K",
        threads=256,
    )
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((100, 88), (88, 200)))
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64))
    body = kernel.source.partition("__global__")[2]
    assert "tl::group() == 1" in body and "thread_of_block" not in body
    assert body.count("tl::sync_block();") == 2  # the tiles were written; they are written again


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_unequal_shares_of_nothing_but_tiles_are_run_by_all(target: str, tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((48, 64), "float32")
        L = T.alloc_fragment((48, 64), "float32")
        sums = T.alloc_fragment((48,), "float32")
        T.copy(X[bx * 48, 0], S)
        if T.get_thread_binding() < {first}:
            T.copy(S, L)
            T.reduce_sum(L, sums, dim=1)
            T.copy(sums, Y[bx * 48, 64])
        else:
            for i, j in T.Parallel(48, 64):
                Y[bx * 48 + i, j] = S[i, 63 - j] * 2
    """
    warp = 64 if target.startswith("hip") else 32
    kernel = load_body(
        tmp_path,
        statements.format(first=warp).replace("Y[bx * 48, 64]", "Z[bx * 48]"),
        'X: T.Tensor((M, 64), "float32"), Z: T.Tensor((M,), "float32"), Y: T.Tensor((M, 64), "float32")',
        grid="T.ceildiv(M, 48)",
        arguments="M",
        threads=3 * warp,
        target=target,
    )
    x, sums = RNG.integers(-9, 10, (100, 64)).astype(np.float32), np.zeros(100, np.float32)
    np.testing.assert_array_equal(kernel(x, sums), x[:, ::-1] * 2)
    np.testing.assert_array_equal(sums, x.sum(axis=1))
    assert "by all threads of the block" in kernel.source


def test_groups_that_hand_tiles_over_have_barriers_of_their_own_for_the_rest(tmp_path: Path) -> None:
    """One group loads by TMA; what all threads wrote before is there for both, and the other's own tile is in order."""
    statements = """
        S = T.alloc_shared((64, 64), "float32")
        turned = T.alloc_shared((64, 64), "float32")
        L = T.alloc_fragment((64, 64), "float32")
        scale = T.alloc_shared((64,), "float32")
        there = T.alloc_barrier(128)
        tid = T.get_thread_binding()
        for i in T.Parallel(64):
            scale[i] = X[bx * 64 + i, 0]
        if tid >= 128:
            if scale[0] > -100:
                T.tma_copy(X[bx * 64, 0], S, barrier=there)
                T.mbarrier_arrive(there)
        else:
            T.mbarrier_wait_parity(there, 0)
            T.copy(S, L)
            for i, j in T.Parallel(64, 64):
                S[i, j] = L[i, j] * scale[j]
            for i, j in T.Parallel(64, 64):
                turned[i, j] = S[j, i]
            T.copy(turned, Y[bx * 64, 0])
    """
    params = 'X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M, 64), "float32")'
    kernel = load_body(
        tmp_path, statements, params, grid="M // 64", arguments="M", target="cuda:sm_90a", threads=256, M=128
    )
    x = RNG.integers(-9, 10, (128, 64)).astype(np.float32)
    tiles = x.reshape(2, 64, 64)
    expected = (tiles * tiles[:, None, :, 0]).transpose(0, 2, 1)
    np.testing.assert_array_equal(kernel(x), expected.reshape(128, 64))
    body = kernel.source.partition("__global__")[2]
    assert body.count("tl::sync_block();") == 2  # for the memory barrier, and for `scale`
    assert "thread_of_block" not in body, "nobody asks for `tid` any more"


def test_what_a_group_ordered_for_itself_is_new_to_the_others(tmp_path: Path) -> None:
    """A group's own barrier, where it reads again what it wrote, shows the tile to its threads alone."""
    statements = """
        S = T.alloc_shared((64,), "float32")
        tx = T.get_thread_binding()
        if tx < 32:
            total = T.alloc_fragment((1,), "float32")
            L = T.alloc_fragment((64,), "float32")
            total[0] = 0
            for k in T.serial(4):
                total[0] += X[k]
            for i in T.Parallel(64):
                L[i] = X[i] + total[0]
            T.copy(L, S)
        if tx < 32:
            for i in T.Parallel(32):
                Y[i] = S[63 - i]
        else:
            M = T.alloc_fragment((64,), "float32")
            T.copy(S, M)
            for i in T.Parallel(64):
                Y[32 + i] = M[i] * 2
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((64,), "float32"), Y: T.Tensor((96,), "float32")', threads=96)
    x = RNG.integers(-9, 10, 64).astype(np.float32)
    sums = x + x[:4].sum()
    np.testing.assert_array_equal(kernel(x), np.concatenate([sums[:31:-1], sums * 2]))
    assert "tl::sync_block();" in kernel.source.partition("__global__")[2]


def test_a_barrier_that_some_threads_need_stands_before_their_branch(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((128,), "float32")
        tx = T.get_thread_binding()
        for k in T.serial(3):
            S[tx] = X[k, tx]
            if tx % 2 == 0:
                if tx < 100:
                    Y[k, tx] = S[127 - tx]
    """
    params = 'X: T.Tensor((3, 128), "float32"), Y: T.Tensor((3, 128), "float32")'
    kernel = load_body(tmp_path, statements, params)
    x = RNG.standard_normal((3, 128)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x)[:, :100:2], x[:, :27:-2])
    assert kernel.source.partition("__global__")[2].count("tl::sync_threads();") == 2  # S is written, and read


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("configs", "given"),
    [
        ("", "{tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True}"),
        ('own = {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: 1, "tl.disable_thread_storage_sync": True}', "own"),
    ],
)
def test_the_user_writes_all_barriers(configs: str, given: str, tmp_path: Path) -> None:
    x = RNG.integers(-9, 10, 256).astype(np.int32)
    found = _scattered(tmp_path, configs, given, "T.sync_threads()")(x)
    assert sorted(found[: (x > 0).sum()]) == sorted(x[x > 0]) and not found[(x > 0).sum() :].any()


def test_the_engine_finds_a_barrier_that_the_user_left_out(tmp_path: Path) -> None:
    kernel = _scattered(tmp_path, "", "{tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True}", "pass")
    with pytest.raises(CheckError, match="race"):
        kernel(np.ones(256, np.int32))


def _scattered(folder: Path, configs: str, given: str, barrier: str) -> Kernel:
    path = folder / "scattered.py"
    path.write_text(OWN_BARRIERS.format(configs=configs, given=given, barrier=barrier), encoding="utf-8")
    return tile2cu.load(path, device="cpu", target="cuda:sm_80", check=True, n=256)


def test_a_kernel_of_as_many_threads_as_a_group_stands_beside_one_of_groups(tmp_path: Path) -> None:
    path = tmp_path / "halves.py"
    path.write_text(
        """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def halves(M):
    @T.prim_func
    def main(X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M, 64), "float32")):
        turned = T.alloc_global((M, 64), "float32")
        with T.Kernel(M // 64, threads=256) as bx:
            S = T.alloc_shared((2, 64, 64), "float32")
            tx = T.get_thread_binding()
            if tx < 128:
                T.copy(X[bx * 64, 0], S[0, :, :])
                for i, j in T.Parallel(64, 32):
                    turned[bx * 64 + i, j] = S[0, j, i]
            else:
                T.copy(X[bx * 64, 0], S[1, :, :])
                for i, j in T.Parallel(64, 32):
                    turned[bx * 64 + i, j + 32] = S[1, j + 32, i] + 1
        with T.Kernel(M // 64, threads=128) as bx:
            S = T.alloc_shared((64, 64), "float32")
            T.copy(turned[bx * 64, 0], S)
            for i, j in T.Parallel(64, 64):
                Y[bx * 64 + i, j] = S[63 - i, j]

    return main
""",
        encoding="utf-8",
    )
    kernel = tile2cu.load(path, device="cpu", target="cuda:sm_80", check=True, M=128)
    x = RNG.integers(-9, 10, (128, 64)).astype(np.float32)
    turned = x.reshape(2, 64, 64).transpose(0, 2, 1) + (np.arange(64) >= 32)
    np.testing.assert_array_equal(kernel(x), turned[:, ::-1].reshape(128, 64))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_shares_that_overlap_do_what_single_threads_do_beside_tiles(target: str, tmp_path: Path) -> None:
    """Operations on tiles are done by all, in loops, too; the other statements by those who come."""
    statements = """
        S = T.alloc_shared((24, 64), "float32")
        sums = T.alloc_shared((24,), "float32")
        tx = T.get_thread_binding()
        if tx < 50:
            row = bx * 24
            T.copy(X[row, 0], S)
            Z[bx, tx] += 1
        if tx < 90:
            row = bx * 2
            Z[bx, tx] += 2
            for part in T.serial(2):
                for i, j in T.Parallel(24, 64):
                    S[i, j] += row + part
                if tx % 64 < 32:
                    Z[bx, tx] += 4
            T.copy(S, Y[bx * 24, 0])
    """
    kernel = load_body(
        tmp_path,
        statements,
        'X: T.Tensor((M, 64), "float32"), Z: T.Tensor((2, 128), "int32"), Y: T.Tensor((M, 64), "float32")',
        grid="T.ceildiv(M, 24)",
        arguments="M",
        threads=128,
        target=target,
    )
    x, z = RNG.integers(-9, 10, (40, 64)).astype(np.float32), np.zeros((2, 128), np.int32)
    np.testing.assert_array_equal(kernel(x, z), x + np.where(np.arange(40) < 24, 1, 5)[:, None])
    tx = np.arange(128)
    np.testing.assert_array_equal(z, [(tx < 50) + (tx < 90) * (2 + 8 * (tx % 64 < 32))] * 2)


def test_a_branch_within_a_branch_keeps_the_outer_condition(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((32,), "float32")
        tx = T.get_thread_binding()
        if tx < 64:
            if tx % 64 >= 32:
                T.fill(S, 3)
                T.copy(S, Y[0, 0:32])
            else:
                Z[tx] = tx
    """
    kernel = load_body(
        tmp_path, statements, 'Z: T.Tensor((128,), "int32"), Y: T.Tensor((1, 32), "float32")', threads=128
    )
    z = np.full(128, -1, np.int32)
    np.testing.assert_array_equal(kernel(z), np.full((1, 32), 3))
    np.testing.assert_array_equal(z, np.where(np.arange(128) < 32, np.arange(128), -1))


def test_an_operation_by_all_reads_what_the_arm_has_written(tmp_path: Path) -> None:
    """A number from a shared tile is the same for all who help."""
    statements = """
        S = T.alloc_shared((8, 32), "float32")
        factors = T.alloc_shared((8,), "float32")
        sums = T.alloc_fragment((32,), "float32")
        T.copy(X, S)
        if T.get_thread_binding() < 32:
            T.copy(S[0, 0:32], Z)
        else:
            for i in T.Parallel(8):
                factors[i] = i + 1
            T.clear(sums)
            for i in T.serial(8):
                factor = factors[i]
                for j in T.Parallel(32):
                    sums[j] += factor * S[i, j]
            T.copy(sums, Y)
    """
    params = 'X: T.Tensor((8, 32), "float32"), Z: T.Tensor((32,), "float32"), Y: T.Tensor((32,), "float32")'
    kernel = load_body(tmp_path, statements, params, threads=96)
    x, z = RNG.integers(-9, 10, (8, 32)).astype(np.float32), np.zeros(32, np.float32)
    np.testing.assert_array_equal(kernel(x, z), (x * np.arange(1, 9)[:, None]).sum(axis=0))
    np.testing.assert_array_equal(z, x[0])


MEETING = """
import tilelang
import tilelang.language as T


def rows(n, threads):
    @T.prim_func
    def body(X: T.Tensor((n, 64), "int32"), Y: T.Tensor((n, 64), "int32")):
        with T.Kernel(n, threads=threads) as bx:
            S = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            if tx < 128:
                if tx < 64:
                    S[tx] = X[bx, tx] + 1
                T.sync_threads()
            else:
                T.sync_threads()
                if tx < 192:
                    Y[bx, tx - 128] = S[191 - tx]
    return body


def reversed_rows(n):
    @tilelang.jit(out_idx=[-1], pass_configs={"tl.disable_thread_storage_sync": True})
    def kernel(threads):
        if threads > 128:
            return rows(n, threads)
        return rows(n, 256)

    return kernel
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_groups_meet_where_the_user_writes_all_barriers(target: str, tmp_path: Path) -> None:
    """From a place in each of the arms; that they are the user's says the jit function around the factory."""
    path = tmp_path / "meeting.py"
    path.write_text(MEETING, encoding="utf-8")
    options = {"schedules": ("round-robin", "reverse", "shuffle")}
    kernel = tile2cu.load(path, device="cpu", target=target, check=True, options=options, n=5, threads=256)
    assert kernel.manifest.entry == "reversed_rows"
    assert kernel.source.count("tl::barrier_sync(0, threads);") == 2
    x = np.random.default_rng(0).integers(-9, 9, (5, 64)).astype(np.int32)
    np.testing.assert_array_equal(kernel(x), x[:, ::-1] + 1)


def test_single_threads_touch_their_own_elements_in_all_turns_of_their_loops(tmp_path: Path) -> None:
    """Where the branch depends on the thread no barrier can stand, and none is needed; one that all take has one."""
    statements = """
        tx = T.get_thread_binding()
        S = T.alloc_shared((16, 96), "float32")
        for i in T.serial(4):
            if X[i, tx] > 0:
                for j in T.serial(4):
                    S[tx // 32 * 4 + j, tx % 32 + i * 0] = X[i, tx] + j
            else:
                for j in T.serial(4):
                    S[tx // 32 * 4 + j, tx % 32] = 0
        if tx < 96:
            for j in T.serial(4):
                Y[j, tx] = S[(95 - tx) // 32 * 4 + j, (95 - tx) % 32]
            S[0, tx] = Y[0, tx]
    """
    kernel = load_body(
        tmp_path, statements, 'X: T.Tensor((4, 96), "float32"), Y: T.Tensor((4, 96), "float32")', threads=96
    )
    x = RNG.integers(-9, 10, (4, 96)).astype(np.float32)
    last = np.where(x[3] > 0, x[3] + np.arange(4)[:, None], 0)
    np.testing.assert_array_equal(kernel(x), last[:, ::-1])


PARTS = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1], pass_configs={tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True})
def parts(rows):
    @T.prim_func
    def body(X: T.Tensor((rows, 1024), "float16"), Y: T.Tensor((rows, 1024), "bfloat16")):
        with T.Kernel(rows, threads=32) as bx:
            lane = T.get_thread_binding()
            S = T.alloc_shared((1280,), "float16")
            T.clear(S[256:512])
            for part in T.serial(2):
                T.async_copy(X[bx, part * 512 : part * 512 + 512], S[part * 768 : part * 768 + 512])
                for step in T.serial(2):
                    for i in T.vectorized(8):
                        at = step * 256 + lane * 8 + i
                        Y[bx, part * 512 + at] = S[part * 768 + at] + X[bx, part * 512 + at]
    return body
"""


def test_each_thread_finds_what_it_copied_to_a_part_of_a_row(tmp_path: Path) -> None:
    """Pieces of 16 bytes, where the part starts at such: no barrier stands between a thread and what it reads."""
    path = tmp_path / "parts.py"
    path.write_text(PARTS, encoding="utf-8")
    kernel = tile2cu.load(path, device="cpu", target="cuda:sm_80", check=True)
    assert "tl::rows<512, tl::Aligned<16>>(S, part * 768)" in kernel.source
    x = RNG.integers(-9, 10, (3, 1024)).astype(np.float16)
    np.testing.assert_array_equal(kernel(x), x + x)


LAID_OUT = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1], pass_configs={tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True})
def laid_out(rows, by):
    def column_by_column(i, j):
        return j, i

    @T.prim_func
    def body(X: T.Tensor((rows, 4, 64), "float16"), Y: T.Tensor((rows, 4, 64), "float16")):
        with T.Kernel(1, threads=64) as bx:
            column = T.get_thread_binding()
            S = T.alloc_shared((4, 64), "float16")
            layout = T.Fragment((4, 64), forward_fn=column_by_column)
            for row in T.serial(rows):
                if by == "loop":
                    for i, j in T.Parallel(4, 64, loop_layout=layout):
                        S[i, j] = X[row, i, j]
                elif by == "copy":
                    T.async_copy(X[row, :, :], S, loop_layout=layout)
                else:
                    for i, j in T.Parallel(4, 64, loop_layout=layout):
                        Y[row, i, j] = X[row, i, j]
                for i in T.serial(4):
                    if by == "tensor":
                        Y[row, i, column] = Y[row, i, column] + Y[row, i, column]
                    else:
                        Y[row, i, column] = S[i, column]
    return body
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("by", "factor"), [("loop", 1), ("copy", 1), ("tensor", 2)])
def test_who_relies_on_a_layout_of_his_own_gets_barriers(by: str, factor: int, tmp_path: Path) -> None:
    """Which thread moves what is chosen here: where the user says it, others wait for what they read."""
    path = tmp_path / "laid_out.py"
    path.write_text(LAID_OUT, encoding="utf-8")
    kernel = tile2cu.load(path, device="cpu", target="cuda:sm_80", check=True, rows=3, by=by)
    x = RNG.integers(-9, 10, (3, 4, 64)).astype(np.float16)
    np.testing.assert_array_equal(kernel(x), x * factor)


HISTOGRAM = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def histogram(n, threads=128):
    @T.prim_func
    def body(X: T.Tensor((n,), "int32"), Y: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=threads):
            counts = T.alloc_shared((256,), "int32")
            tx = T.get_thread_binding()
            at = T.alloc_var("int32")
            for i in T.Parallel(256):
                counts[i] = 0
            {loop}
            T.copy(counts, Y)
    return body
"""
WHILE = """at = tx
            while at < n:
                if X[at] >= 0:
                    T.atomic_add(counts[X[at] & 255], 1)
                at += threads"""
FOR = """for at in T.serial(tx, n, threads):
                if X[at] >= 0:
                    T.atomic_add(counts[X[at] & 255], 1)"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("loop", [WHILE, FOR], ids=["while", "for"])
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_a_barrier_for_a_loop_that_diverges_is_before_it(loop: str, target: str, tmp_path: Path) -> None:
    path = tmp_path / "histogram.py"
    path.write_text(HISTOGRAM.format(loop=loop), encoding="utf-8")
    kernel = tile2cu.load(path, target=target, device="cpu", check=True)
    values = RNG.integers(-100, 300, 1000).astype(np.int32)
    np.testing.assert_array_equal(kernel(values), np.bincount(values[values >= 0] & 255, minlength=256))


def test_no_barrier_before_a_loop_orders_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "histogram.py"
    loop = FOR + "\n                    counts[(tx + 1) % 256] = counts[tx] + 1"
    path.write_text(HISTOGRAM.format(loop=loop), encoding="utf-8")
    with pytest.raises(tile2cu.Error, match="a barrier is needed here, inside a loop that diverges"):
        tile2cu.emit(path)
