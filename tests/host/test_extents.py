"""Rows that are no power of two wide: spread over the threads with few idle, 16 bytes each, and right."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(4)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("channels", "grid"),
    [(160, "tl::Shape<6, 20>, 8"), (320, "tl::Shape<3, 40>, 8"), (640, "tl::Shape<8, 16>, 8")],
)
def test_channels(channels: int, grid: str, tmp_path: Path) -> None:
    statements = f"""
        L = T.alloc_fragment((24, {channels}), "float16")
        R = T.alloc_fragment((24, {channels}), "float32")
        cols = T.alloc_fragment(({channels},), "float32")
        T.copy(X[bx * 24, 0], L)
        for i, j in T.Parallel(24, {channels}):
            R[i, j] = L[i, j] * 2.0
        T.reduce_sum(R, cols, dim=0)
        for i, j in T.Parallel(24, {channels}):
            R[i, j] = R[i, j] + cols[j]
        T.copy(R, Y[bx * 24, 0])
        for j in T.Parallel({channels}):
            Z[bx, j] = cols[j]
    """
    params = (
        f'X: T.Tensor((M, {channels}), "float16"), Z: T.Tensor((3, {channels}), "float32"), '
        f'Y: T.Tensor((M, {channels}), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 24)", arguments="M")
    assert grid in kernel.source
    x = RNG.integers(-4, 5, (60, channels)).astype(np.float16)
    z = np.zeros((3, channels), np.float32)
    y = kernel(x, z)
    padded = np.concatenate([2 * x.astype(np.float64), np.zeros((12, channels))]).reshape(3, 24, channels)
    np.testing.assert_array_equal(z, padded.sum(axis=1))
    np.testing.assert_array_equal(y, (padded + padded.sum(axis=1, keepdims=True)).reshape(72, channels)[:60])


def test_packets_of_shared_rows_start_at_multiples_of_their_width(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((32, 68), "float32")
        narrow = T.alloc_shared((32, 65), "float32")
        sums = T.alloc_fragment((64,), "float32")
        T.copy(X, S)
        T.clear(sums)
        for i, j in T.Parallel(32, 64):
            narrow[i, j] = S[i, j + 1] + S[i, j + 4]
        for i, j in T.Parallel(1, 64):
            sums[j] += narrow[i + 3, j] * 2.0
        for i, j in T.Parallel(32, 64):
            Y[i, j] = narrow[i, j] + sums[j]
    """
    params = 'X: T.Tensor((32, 68), "float32"), Y: T.Tensor((32, 64), "float32")'
    x = RNG.integers(-4, 5, (32, 68)).astype(np.float32)
    narrow = x[:, 1:65] + x[:, 4:68]
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), narrow + 2 * narrow[3])


def test_conditions_of_the_user_take_the_place_of_guards(tmp_path: Path) -> None:
    statements = """
        for i, j in T.Parallel(24, 40):
            row = bx * 24 + i
            if row < M and j < N:
                Y[row, j] = X[row, j] * 2.0
                if j >= 1:
                    Y[row, j] = Y[row, j] + X[row, j - 1]
    """
    params = 'X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 24)", arguments="M, N")
    assert "ragged" not in kernel.source
    x = RNG.integers(-4, 5, (50, 37)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), 2 * x + np.pad(x, ((0, 0), (1, 0)))[:, :37])


CHANGING = {
    "a variable": "row = T.alloc_var('int32')\n    row = bx * 24 + i\n    if row < M:\n        row = row + 24\n"
    "        Y[row] = X[row]",
    "an element": "if rows[bx * 24 + i] < M:\n        rows[bx * 24 + i] = rows[bx * 24 + i] + 24\n"
    "        Y[rows[bx * 24 + i]] = X[rows[bx * 24 + i]]",
}


@pytest.mark.parametrize("name", CHANGING)
def test_a_condition_that_ceases_to_hold_is_no_guard(name: str, tmp_path: Path) -> None:
    statements = "for i in T.Parallel(24):\n    " + CHANGING[name]
    params = 'X: T.Tensor((M,), "float32"), rows: T.Tensor((72,), "int32"), Y: T.Tensor((M,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 24)", arguments="M")
    x = RNG.integers(1, 5, 50).astype(np.float32)
    np.testing.assert_array_equal(kernel(x, np.arange(72, dtype=np.int32))[24:], x[24:])


@pytest.mark.parametrize("first", [40, 30])
def test_loops_and_values_of_one_name_keep_their_own_ranges(first: int, tmp_path: Path) -> None:
    """Two loops by `j`, over rows and past them; the wider one stays guarded wherever it stands."""
    statements = f"""
        for i, j in T.Parallel(8, {first}):
            row = bx * 8 + i
            Y[row, j] = 1.0
        T.sync_threads()
        for i, j in T.Parallel(8, {70 - first}):
            row = bx * 8 + i + 8
            Y[row - 8, j] = 2.0
    """
    kernel = load_body(tmp_path, statements, 'Y: T.Tensor((20, 34), "float32")', grid="3", threads=32)
    assert "tl::predicated(20), tl::predicated(34)" in kernel.source
    expected = np.full((20, 34), 2.0)
    expected[:, 70 - first :] = 1
    np.testing.assert_array_equal(kernel(), expected)


def test_a_loop_over_elements_ends_where_only_a_run_tells(tmp_path: Path) -> None:
    statements = """
        held = T.alloc_shared((8,), "float32")
        for j in T.Parallel(8):
            held[j] = j
        for i, j in T.Parallel(L[bx], 8):
            Y[bx, i, j] = X[bx, i, j] + held[7 - j]
        first = T.min(N, 7)
        for i, k in T.Parallel(first, T.max(first - 3, 0)):
            Z[bx, i, k] += 1
    """
    params = (
        'X: T.Tensor((M, N, 8), "float32"), L: T.Tensor((M,), "int32"), Z: T.Tensor((M, N, N), "int32"), '
        'Y: T.Tensor((M, N, 8), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, grid="M", arguments="M, N", threads=96)
    x, lengths = RNG.integers(-9, 10, (3, 50, 8)).astype(np.float32), np.array([50, 0, 13], np.int32)
    y, z = np.zeros_like(x), np.zeros((3, 50, 50), np.int32)
    kernel(x, lengths, z, y)
    expected = np.zeros_like(x)
    for block, length in enumerate(lengths):
        expected[block, :length] = x[block, :length] + np.arange(7, -1, -1)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z[:, :7, :4], 1)
    assert z.sum() == 3 * 7 * 4


def test_parts_of_tensors_are_copied_as_far_as_a_run_tells(tmp_path: Path) -> None:
    statements = """
        T.copy(X[S[bx] : S[bx + 1], :], Y[0 : S[bx + 1] - S[bx], :])
        T.copy(X[0:2, 0:N], Z)
    """
    params = (
        'X: T.Tensor((M, N), "float16"), S: T.Tensor((2,), "int32"), Z: T.Tensor((2, N), "float32"), '
        'Y: T.Tensor((M, N), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, arguments="M, N", threads=96)
    x, z, y = RNG.integers(-9, 10, (70, 37)).astype(np.float16), np.zeros((2, 37), np.float32), np.zeros((70, 37))
    y = y.astype(np.float32)
    kernel(x, np.array([20, 63], np.int32), z, y)
    expected = np.zeros_like(y)
    expected[:43] = x[20:63]
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z, x[:2])


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_parts_of_tensors_and_of_tiles_are_copied_as_far_as_a_run_tells(target: str, tmp_path: Path) -> None:
    """Rows that end with a sequence, and columns with the tensor, into what was cleared."""
    statements = """
        S = T.alloc_shared((16, 32), "float32")
        L = T.alloc_fragment((16, 32), "float32")
        start = T.alloc_var("int32", ends[by])
        end = T.min(start + 16, ends[by + 1])
        T.clear(S)
        T.copy(X[start:end, bx * 32 : T.min(bx * 32 + 32, N)], S[0 : end - start, : T.min(bx * 32 + 32, N) - bx * 32])
        T.copy(S, L)
        T.copy(L, Y[by * 16, bx * 32])
    """
    params = 'X: T.Tensor((M, N), "float32"), ends: T.Tensor((B + 1,), "int32"), Y: T.Tensor((B * 16, N), "float32")'
    grid = {"grid": "T.ceildiv(N, 32), B", "blocks": "(bx, by)"}
    kernel = load_body(tmp_path, statements, params, **grid, arguments="M, N, B", B=3, target=target)
    x, ends = RNG.integers(1, 9, (40, 45)).astype(np.float32), np.array([0, 16, 21, 37], np.int32)
    expected = np.zeros((48, 45), np.float32)
    for at, (start, end) in enumerate(zip(ends, ends[1:], strict=False)):
        expected[16 * at : 16 * at + end - start] = x[start:end]
    np.testing.assert_array_equal(kernel(x, ends), expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("tile", "fragment"), [((1, 8, 24), (1, 8, 24)), ((8, 24), (8, 1, 24)), ((8, 24), (1, 8, 24))])
def test_a_fragment_may_have_dimensions_of_one_that_a_tile_has_not(
    tile: tuple[int, ...], fragment: tuple[int, ...], tmp_path: Path
) -> None:
    statements = f"""
        S = T.alloc_shared({tile}, "float32")
        L = T.alloc_fragment({fragment}, "float32")
        T.copy(X[bx, 0, 0], S)
        T.copy(S, L)
        for i, j, k in T.Parallel(*{fragment}):
            L[i, j, k] = L[i, j, k] * 2.0 + k
        T.copy(L, S)
        T.copy(S, Y[bx, 0, 0])
    """
    params = 'X: T.Tensor((3, 8, 24), "float32"), Y: T.Tensor((3, 8, 24), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="3")
    x = RNG.integers(-9, 9, (3, 8, 24)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), 2 * x + np.arange(24))
