"""What turns of a pipelined loop on Hopper add to tensors, by TMA, and lines that they load ahead."""

import hashlib
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel, LaunchError, load_kernel

RNG = np.random.default_rng(0)
ADDED = """
    A_shared = T.alloc_shared((64, 64), "float16")
    B_shared = T.alloc_shared((64, {cols}), "float16")
    S = T.alloc_fragment((64, {cols}), "float32")
    for k in T.Pipelined(T.ceildiv(M, 64), num_stages=2):
        T.copy(A[k * 64, bx * 64], A_shared)
        T.copy(B[bx * 64, 0], B_shared)
        T.gemm(A_shared, B_shared, S, clear_accum=True)
        T.atomic_add(Sum[k * 64, 0], S)
    if bx == 0:
        Y[0] = 1
"""


def added(folder: Path, cols: int, threads: int = 128) -> Kernel:
    params = (
        f'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, {cols}), "float16"), Sum: T.Tensor((M, {cols}), "float32"), '
        'Y: T.Tensor((1,), "float32")'
    )
    statements, grid = ADDED.format(cols=cols), "T.ceildiv(K, 64)"
    return load_body(folder, statements, params, grid=grid, arguments="M, K", threads=threads, target="cuda:sm_90a")


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("cols", "threads"), [(64, 128), (128, 256)])
def test_blocks_add_their_parts_of_a_product_to_a_tensor(cols: int, threads: int, tmp_path: Path) -> None:
    """Integers, so that the order does not matter; rows behind the tensor's are dropped."""
    kernel = added(tmp_path, cols, threads)
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((150, 192), (192, cols)))
    sums = RNG.integers(-9, 10, (150, cols)).astype(np.float32)
    expected = sums + a.astype(np.float32) @ b.astype(np.float32)
    kernel(a, b, sums)
    np.testing.assert_array_equal(sums, expected)
    body = kernel.source.partition("__global__")[2]
    assert "tl::tma_add_start(S, S_staging, Sum_map, tl::at(k * 64, 0));" in body
    assert (
        body.index("tl::tma_store_wait_read") < body.index("tl::tma_add_start") < body.rindex("tl::tma_store_wait_read")
    )


def test_columns_that_are_no_whole_panels_are_added_by_threads(tmp_path: Path) -> None:
    kernel = added(tmp_path, 16)
    a, b = np.ones((70, 64), np.float16), np.ones((64, 16), np.float16)
    sums = np.zeros((70, 16), np.float32)
    kernel(a, b, sums)
    np.testing.assert_array_equal(sums, 64)
    assert "tl::atomic_add(S, " in kernel.source


def test_the_engine_finds_a_tile_that_is_staged_too_early(tmp_path: Path) -> None:
    """Without the wait TMA still reads what the turn before staged."""
    added(tmp_path, 64)
    (emitted,) = tile2cu.emit(tmp_path / "small.py", target="cuda:sm_90a").values()
    broken = emitted.source.replace(
        "    tl::tma_store_wait_read();  // lane 0 waits, then __syncwarp: the warp's staged rows may be overwritten\n",
        "\n",
    )
    assert broken != emitted.source
    true, false = (hashlib.sha256(text.encode()).hexdigest() for text in (emitted.source, broken))
    folder = tmp_path / "broken"
    folder.mkdir()
    for name, content in emitted.files.items():
        (folder / name).write_text(
            broken if content == emitted.source else content.replace(true, false), encoding="utf-8"
        )
    kernel = load_kernel(folder / f"{emitted.kernel}.json", device="cpu", check=True)
    with pytest.raises((CheckError, LaunchError), match="race"):
        kernel(np.ones((128, 64), np.float16), np.ones((64, 64), np.float16), np.zeros((128, 64), np.float32))


LINES = """
    A_shared = T.alloc_shared((64, 64), "float16")
    line = T.alloc_shared((64,), "float32")
    S = T.alloc_fragment((64, 64), "float32")
    T.clear(S)
    for k in T.Pipelined({turns}, num_stages=2):
        T.copy(A[k * 64, 0], A_shared)
        first = {first}
        T.copy(Line[first : first + 64], line)
        T.gemm(A_shared, A_shared, S)
        for i, j in T.Parallel(64, 64):
            S[i, j] += line[j]
    T.copy(S, Y)
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("turns", "first", "rows"),
    [
        ("T.ceildiv(M, 64)", "T.if_then_else(k < M, k, 0) * 64", 150),
        ("T.ceildiv(M, 64)", "k * 64", 0),
        ("3", "k * 64", 192),
    ],
)
def test_lines_of_the_next_turn_are_loaded_under_this_one(turns: str, first: str, rows: int, tmp_path: Path) -> None:
    """Integers; the last line ends behind the tensor's, where it is zero, and a loop without turns loads none."""
    params = 'A: T.Tensor((M, 64), "float16"), Line: T.Tensor((M,), "float32"), Y: T.Tensor((64, 64), "float32")'
    kernel = load_body(tmp_path, LINES.format(turns=turns, first=first), params, arguments="M", target="cuda:sm_90a")
    a = RNG.integers(-4, 5, (rows, 64)).astype(np.float16)
    line = RNG.integers(-9, 10, rows).astype(np.float32)
    expected = np.zeros((64, 64), np.float32)
    for k in range(0, rows, 64):
        tile, part = np.zeros((64, 64), np.float32), np.zeros(64, np.float32)
        tile[: len(a[k : k + 64])], part[: len(line[k : k + 64])] = a[k : k + 64], line[k : k + 64]
        expected += tile @ tile + part
    np.testing.assert_array_equal(kernel(a, line), expected)
    body = kernel.source.partition("__global__")[2]
    assert body.index("tl::load(Line.tile(first), line_next);") < body.index("tl::store(line_next, line);")
    assert body.count("const int first = ") == 1  # the load's own: nothing else in a turn needs it


LEFT = """
    A_shared = T.alloc_shared((64, 64), "float16")
    B_shared = T.alloc_shared((64, 64), "float16")
    S = T.alloc_fragment((64, 64), "float32")
    past = T.alloc_fragment((64, 64), "float32")
    sums = T.alloc_fragment((64, 64), "float32")
    row = T.alloc_var("int32", init=0)
    T.clear(S)
    T.clear(sums)
    for k in T.Pipelined(T.ceildiv(M, 64), num_stages=2):
        first = row * 64
        if k > 0:
            T.copy({tile}, past)
            for i, j in T.Parallel(64, 64):
                sums[i, j] += past[i, j]
        T.copy(A[k * 64, 0], A_shared)
        T.copy(A[first, 0], B_shared)
        T.gemm(A_shared, B_shared, S)
        row = row + 1
    if {tile}[0, 0] == A[{last}, 0]:
        for i, j in T.Parallel(64, 64):
            S[i, j] += sums[i, j]
    T.copy(S, Y)
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("tile", ["A_shared", "B_shared"])
def test_what_a_turn_leaves_in_a_tile_is_read_later(tile: str, tmp_path: Path) -> None:
    """By the next turn, in a branch, and by a condition behind the loop; a place is named that a turn changes."""
    params = 'A: T.Tensor((M, 64), "float16"), Y: T.Tensor((64, 64), "float32")'
    statements = LEFT.format(tile=tile, last=192)
    kernel = load_body(tmp_path, statements, params, arguments="M", target="cuda:sm_90a")
    a = RNG.integers(-4, 5, (256, 64)).astype(np.float16)
    a[0, 0], a[128, 0], a[192, 0] = 1, 2, 3
    tiles = a.astype(np.float32).reshape(4, 64, 64)
    np.testing.assert_array_equal(kernel(a), sum(each @ each for each in tiles) + tiles[:3].sum(axis=0))


SCALED = """
    A_shared = T.alloc_shared((64, 128), "float8_e4m3fn")
    B_shared = T.alloc_shared((64, 128), "float8_e4m3fn")
    scale = T.alloc_shared((64,), "float32")
    S = T.alloc_fragment((64, 64), "float32")
    sums = T.alloc_fragment((64, 64), "float32")
    turn = T.alloc_var("int32", init=0)
    T.clear(S)
    T.clear(sums)
    for k in T.Pipelined(T.ceildiv(K, 128), num_stages=2):
        T.copy(A[by * 64, k * 128], A_shared)
        T.copy(B[bx * 64, k * 128], B_shared)
        other = scales_B[bx // 2, k]
        weight = T.cast(turn + 1, "float32")
        turn += 1
        for i in T.Parallel(64):
            scale[i] = scales_A[by * 64 + i, k] * other * weight
        T.gemm(A_shared, B_shared, S, transpose_B=True)
        for i, j in T.Parallel(64, 64):
            sums[i, j] += S[i, j] * scale[i]
        T.clear(S)
    T.copy(sums, C[by * 64, bx * 64])
"""


def test_scales_of_rows_are_in_registers_a_turn_ahead(tmp_path: Path) -> None:
    """A line of shared memory in the Python; sizes that leave tiles partly empty, powers of two as scales.

    A value that a turn names before it changes a variable stays what it was.
    """
    kernel = load_body(
        tmp_path,
        SCALED,
        'A: T.Tensor((M, K), "float8_e4m3fn"), B: T.Tensor((N, K), "float8_e4m3fn"), '
        'scales_A: T.Tensor((M, T.ceildiv(K, 128)), "float32"), '
        'scales_B: T.Tensor((T.ceildiv(N, 128), T.ceildiv(K, 128)), "float32"), C: T.Tensor((M, N), "float32")',
        grid="T.ceildiv(N, 64), T.ceildiv(M, 64)",
        blocks="(bx, by)",
        arguments="M, N, K",
        target="cuda:sm_90a",
    )
    _, _, turn = kernel.source.partition("pipeline.consumer_wait(")
    turn = turn[: turn.index("\n  }\n")]
    assert all(rule in turn for rule in ("vector.own-rows", "vector.prefetched", "gemm.clears"))
    assert "tl::overwrite" in turn and "tl::clear" not in turn and "tl::sync_" not in turn
    for m, n, k in ((150, 200, 304), (1, 8, 16), (64, 64, 0)):
        groups, columns = -(-k // 128), -(-n // 128)
        a, b = (RNG.integers(-4, 5, shape).astype(np.float64) for shape in ((m, k), (n, k)))
        scales_a, scales_b = (2.0 ** RNG.integers(-2, 3, (rows, groups)) for rows in (m, columns))
        weights = np.arange(1, groups + 1).repeat(128)[:k]
        whole = b * weights * scales_b.repeat(128, 0)[:n].repeat(128, 1)[:, :k]
        data = (a.astype(ml_dtypes.float8_e4m3fn), b.astype(ml_dtypes.float8_e4m3fn))
        found = kernel(*data, scales_a.astype(np.float32), scales_b.astype(np.float32))
        np.testing.assert_array_equal(found, (a * scales_a.repeat(128, 1)[:, :k]) @ whole.T)
        assert kernel.report is not None and not kernel.report.findings
