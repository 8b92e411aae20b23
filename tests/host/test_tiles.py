"""Tiles of any rank, their parts and their reductions: small kernels, run with every check, compared with NumPy."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(1)


def integers(*shape: int, dtype: object = np.float32) -> np.ndarray:
    return RNG.integers(-4, 5, shape).astype(dtype)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("shape", [(4, 8, 64), (5, 6, 100), (2, 64, 1)])
def test_a_fragment_of_rank_3_is_reduced_along_its_last_dimension(shape: tuple[int, int, int], tmp_path: Path) -> None:
    statements = f"""
        L = T.alloc_fragment({shape}, "float32")
        r = T.alloc_fragment({shape[:2]}, "float32")
        T.copy(X, L)
        T.reduce_sum(L, r, dim=2)
        T.copy(r, Y)
    """
    params = f'X: T.Tensor({shape}, "float32"), Y: T.Tensor({shape[:2]}, "float32")'
    x = integers(*shape)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), x.sum(axis=2))


def test_shared_tiles_of_any_rank_and_their_planes(tmp_path: Path) -> None:
    statements = """
        A_shared = T.alloc_shared((2, 64, 32), "float16")
        B_shared = T.alloc_shared((1, 2, 32, 48), "float16")
        C_local = T.alloc_fragment((64, 48), "float32")
        T.copy(A, A_shared)
        for p in T.serial(2):
            T.copy(B[p, :, :], B_shared[0, p, :, :])
        T.clear(C_local)
        for p in T.serial(2):
            T.gemm(A_shared[p, :, :], B_shared[0, p, :, :], C_local)
        T.gemm(A_shared[0, 0:64, 16:32], B_shared[0, 1, 0:16, :], C_local)
        for i, j in T.Parallel(64, 48):
            C_local[i, j] = C_local[i, j] + A_shared[1, i, 3]
        T.copy(C_local, C)
    """
    params = (
        'A: T.Tensor((2, 64, 32), "float16"), B: T.Tensor((2, 32, 48), "float16"), C: T.Tensor((64, 48), "float32")'
    )
    kernel = load_body(tmp_path, statements, params)
    a, b = integers(2, 64, 32, dtype=np.float16), integers(2, 32, 48, dtype=np.float16)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    expected = sum(wide_a[p] @ wide_b[p] for p in range(2)) + wide_a[0, :, 16:] @ wide_b[1, :16] + wide_a[1, :, 3:4]
    np.testing.assert_array_equal(kernel(a, b), expected)


def test_parts_of_every_kind_of_tile_are_copied_and_filled(tmp_path: Path) -> None:
    statements = """
        L = T.alloc_fragment((40, 64), "float32")
        R = T.alloc_fragment((64,), "float32")
        S = T.alloc_shared((40, 64), "float32")
        mine = T.alloc_local((4,), "float32")
        T.fill(L, 1)
        T.fill(S, 2)
        T.fill(L[8:16, :], 3)
        T.fill(S[5, :], bx + 4)
        T.copy(X[bx * 40, 0], L[16:40, :])
        T.copy(L[3, :], R)
        T.copy(R, S[6, :])
        T.copy(X[bx * 40, 0:4], mine)
        T.copy(S[0:10, 32:64], L[30:40, 0:32])
        for i, j in T.Parallel(30, 60):
            L[i, j] = L[i, j] * 2.0 + mine[1]
        T.copy(L, Y[bx * 40, 0])
    """
    params = 'X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M, 64), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 40)", arguments="M")
    x = integers(90, 64)
    tiles = []
    for block in range(3):
        rows = np.zeros((40, 64))
        rows[: len(x[block * 40 :][:40])] = x[block * 40 :][:40]
        tile, shared = np.full((40, 64), 1.0), np.full((40, 64), 2.0)
        tile[8:16], shared[5] = 3, block + 4
        tile[16:40] = rows[:24]
        shared[6] = tile[3]
        tile[30:40, :32] = shared[:10, 32:]
        tile[:30, :60] = tile[:30, :60] * 2 + rows[0, 1]
        tiles.append(tile)
    np.testing.assert_array_equal(kernel(x), np.concatenate(tiles)[:90])


def test_reductions_from_anywhere_to_anywhere_along_any_dimension(tmp_path: Path) -> None:
    statements = """
        L = T.alloc_fragment((4, 6, 40), "float32")
        first = T.alloc_fragment((6, 40), "float32")
        middle = T.alloc_shared((4, 40), "float32")
        S = T.alloc_shared((4, 6, 40), "float32")
        last = T.alloc_shared((4, 6), "float32")
        rows = T.alloc_shared((6,), "float32")
        T.copy(X, L)
        T.copy(X, S)
        T.reduce_sum(L, first, dim=0)
        T.fill(middle, 3)
        T.reduce_max(L, middle, dim=1, clear=False)
        T.reduce_min(S, last, dim=2)
        T.reduce_absmax(first, rows, dim=1)
        for i, j, k in T.Parallel(4, 6, 40):
            Y[i, j, k] = first[j, k] + 100 * middle[i, k] + 10000 * last[i, j] + rows[j]
    """
    params = 'X: T.Tensor((4, 6, 40), "float32"), Y: T.Tensor((4, 6, 40), "float32")'
    x = integers(4, 6, 40)
    first, middle, last = x.sum(axis=0), np.maximum(x.max(axis=1), 3), x.min(axis=2)
    rows = np.abs(first).max(axis=1)
    expected = first[None] + 100 * middle[:, None] + 10000 * last[:, :, None] + rows[None, :, None]
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("dim", [0, 1])
def test_rows_and_columns_of_a_product_are_summed_up(target: str, dim: int, tmp_path: Path) -> None:
    statements = f"""
        S = T.alloc_shared((128, 128), "float16")
        L = T.alloc_fragment((128, 128), "float32")
        line = T.alloc_fragment((128,), "float32")
        total = T.alloc_fragment((1,), "float32")
        T.copy(X, S)
        T.gemm(S, S, L, clear_accum=True)
        T.reduce_sum(L, line, dim={dim})
        T.reduce_sum(line, total, dim=0)
        Y[0] = total[0]
    """
    params = 'X: T.Tensor((128, 128), "float16"), Y: T.Tensor((1,), "float32")'
    x = integers(128, 128)
    kernel = load_body(tmp_path, statements, params, threads=256, target=target)
    np.testing.assert_array_equal(kernel(x.astype(np.float16)), [(x @ x).sum()])


def test_conditions_of_tiles_are_masks(tmp_path: Path) -> None:
    statements = """
        x = T.alloc_fragment((24, 40), "float32")
        rows = T.alloc_fragment((24,), "float32")
        positive = T.alloc_fragment((24, 40), "bool")
        above = T.alloc_shared((24, 40), "bool")
        three = T.alloc_fragment((24, 40), "int32")
        T.copy(X, x)
        T.copy(R, rows)
        T.copy(x > 0, positive)
        T.copy(x >= rows[:, None], above)
        T.copy(x == 3, three)
        for i, j in T.Parallel(24, 40):
            Y[i, j] = T.if_then_else(positive[i, j], 1, 0) + 2 * above[i, j] + 4 * three[i, j]
        T.copy(~(x < rows[:, None]), three)
        for i, j in T.Parallel(24, 40):
            Y[i, j] += 8 * three[i, j]
    """
    params = 'X: T.Tensor((24, 40), "float32"), R: T.Tensor((24,), "float32"), Y: T.Tensor((24, 40), "int32")'
    kernel = load_body(tmp_path, statements, params)
    x, rows = integers(24, 40), integers(24)
    above = x >= rows[:, None]
    np.testing.assert_array_equal(kernel(x, rows), (x > 0) + 2 * above + 4 * (x == 3) + 8 * above)
