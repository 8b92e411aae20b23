"""T.alloc_reducer with every operation, and reductions bit by bit, against NumPy."""

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(5)


def test_a_reducer_collects_over_several_loops(tmp_path: Path) -> None:
    statements = """
        total = T.alloc_reducer((40,), "float32", replication="all")
        X_local = T.alloc_fragment((40, 64), "float16")
        w_local = T.alloc_fragment((64,), "float16")
        T.clear(total)
        for k in T.Pipelined(T.ceildiv(N, 64), num_stages=2):
            T.copy(X[bx * 40, k * 64], X_local)
            T.copy(w[k * 64], w_local)
            for i, j in T.Parallel(40, 64):
                total[i] += X_local[i, j] * w_local[j]
        T.finalize_reducer(total)
        T.copy(total, Y[bx * 40])
    """
    params = 'X: T.Tensor((M, N), "float16"), w: T.Tensor((N,), "float16"), Y: T.Tensor((M,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 40)", arguments="M, N")
    x, w = RNG.integers(-4, 5, (50, 150)).astype(np.float16), RNG.integers(-4, 5, 150).astype(np.float16)
    np.testing.assert_array_equal(kernel(x, w), x.astype(np.float64) @ w.astype(np.float64))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("kind", ["max", "min", "bitxor"])
def test_reducers_of_columns_rows_and_everything(kind: str, tmp_path: Path) -> None:
    statements = f"""
        cols = T.alloc_reducer((48,), "int32", op={kind!r})
        rows = T.alloc_reducer((20,), "int32", op={kind!r})
        every = T.alloc_reducer((1,), "int32", op={kind!r})
        out = T.alloc_fragment((48,), "int32")
        T.reducer_init(cols)
        T.reducer_init(rows, 3)
        T.reducer_init(every)
        for i, j in T.Parallel(20, 48):
            T.reducer_update(cols[j], X[i, j])
            if j % 2 == 0:
                T.reducer_update(rows[i], X[i, j])
            T.reducer_update(every[0], X[i, j] + 1)
        T.finalize_reducer(cols, out)
        T.finalize_reducer(rows)
        for j in T.Parallel(48):
            Y[0, j] = out[j]
        for i in T.Parallel(20):
            Y[1, i] = rows[i]
            Y[2, i] = every[0]
    """
    params = 'X: T.Tensor((20, 48), "int32"), Y: T.Tensor((3, 48), "int32")'
    x = RNG.integers(-9, 10, (20, 48)).astype(np.int32)
    combine = {"max": np.maximum, "min": np.minimum, "bitxor": np.bitwise_xor}[kind]
    y = load_body(tmp_path, statements, params)(x)
    np.testing.assert_array_equal(y[0], combine.reduce(x, axis=0))
    np.testing.assert_array_equal(y[1, :20], combine(combine.reduce(x[:, ::2], axis=1), 3))
    np.testing.assert_array_equal(y[2, :20], combine.reduce(x + 1, axis=None))


def test_reductions_bit_by_bit(tmp_path: Path) -> None:
    statements = """
        L = T.alloc_fragment((24, 40), "uint32")
        a = T.alloc_fragment((24,), "uint32")
        o = T.alloc_fragment((24,), "uint32")
        x = T.alloc_fragment((24,), "uint32")
        T.copy(X, L)
        T.reduce_bitand(L, a, dim=1)
        T.reduce_bitor(L, o, dim=1)
        T.reduce_bitxor(L, x, dim=1)
        for i in T.Parallel(24):
            Y[0, i] = a[i]
            Y[1, i] = o[i]
            Y[2, i] = x[i]
    """
    params = 'X: T.Tensor((24, 40), "uint32"), Y: T.Tensor((3, 24), "uint32")'
    x = RNG.integers(0, 2**32, (24, 40), dtype=np.uint32) | np.uint32(1 << 7)
    y = load_body(tmp_path, statements, params)(x)
    for row, combine in zip(y, (np.bitwise_and, np.bitwise_or, np.bitwise_xor), strict=True):
        np.testing.assert_array_equal(row, combine.reduce(x, axis=1))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_nan_wins_where_it_is_asked_to(dtype: str, tmp_path: Path) -> None:
    statements = f"""
        L = T.alloc_fragment((6, 200), {dtype!r})
        S = T.alloc_shared((6, 200), {dtype!r})
        out = T.alloc_fragment((6,), {dtype!r})
        T.copy(X, L)
        T.copy(X, S)
        T.reduce_max(L, out, dim=1, nan_propagate=True)
        T.copy(out, Y[0, 0])
        T.reduce_absmax(L, out, dim=1, clear=False, nan_propagate=True)
        T.copy(out, Y[1, 0])
        T.reduce_min(S, out, dim=1, nan_propagate=True)
        T.copy(out, Y[2, 0])
        T.reduce_min(L, out, dim=1)
        T.copy(out, Y[3, 0])
    """
    params = f"X: T.Tensor((6, 200), {dtype!r}), Y: T.Tensor((4, 6), {dtype!r})"
    x = RNG.standard_normal((6, 200)).astype(dtype)
    x[1, 77] = x[4, 0] = x[4, 199] = np.nan
    expected = np.stack([x.max(1), np.abs(x).max(1), x.min(1), np.fmin.reduce(x, 1)])
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), expected)


def test_updates_of_a_part_of_a_reducer(tmp_path: Path) -> None:
    statements = """
        left = T.alloc_fragment((3, 200), "int32")
        right = T.alloc_fragment((4, 200), "int32")
        T.copy(X[0:3, :], left)
        T.copy(X[3:7, :], right)
        products = T.alloc_reducer((3, 4), "int32", op="sum")
        largest = T.alloc_reducer((2, 200), "int32", op="max")
        T.reducer_init(products)
        T.reducer_init(largest)
        for i in T.serial(3):
            for j in T.serial(4):
                for k in T.Parallel(200):
                    T.reducer_update(products[i, j], left[i, k] * right[j, k])
            for k in T.Parallel(200):
                T.reducer_update(largest[i % 2, k], left[i, k])
        result = T.alloc_fragment((3, 4), "int32")
        T.finalize_reducer(products, result)
        T.finalize_reducer(largest)
        T.copy(result, Y[0:3, 0:4])
        T.copy(largest, Y[3:5, :])
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((7, 200), "int32"), Y: T.Tensor((5, 200), "int32")')
    x = RNG.integers(-9, 10, (7, 200)).astype(np.int32)
    y = np.asarray(kernel(x))
    np.testing.assert_array_equal(y[:3, :4], x[:3] @ x[3:].T)
    np.testing.assert_array_equal(y[3], np.maximum(x[0], x[2]))
    np.testing.assert_array_equal(y[4], x[1])


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("update", ["best[{at}] = T.max(best[{at}], abs(L[i, j]))", "best[{at}] += L[i, j]"])
def test_turns_that_meet_at_an_element_combine(update: str, dtype: str, tmp_path: Path) -> None:
    """Eight neighbours, and all rows of a group: none of what they bring is lost."""
    statements = f"""
        L = T.alloc_fragment((32, 64), "{dtype}")
        best = T.alloc_fragment((2, 8), "{dtype}")
        T.copy(X, L)
        T.fill(best, 1)
        for i, j in T.Parallel(32, 64):
            column = j % 64 // 8
            {update.format(at="i // 16, column")}
        T.copy(best, Y)
    """
    kernel = load_body(tmp_path, statements, f'X: T.Tensor((32, 64), "{dtype}"), Y: T.Tensor((2, 8), "{dtype}")')
    x = RNG.integers(-2, 3, (32, 64)).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    groups = x.astype(np.float32).reshape(2, 16, 8, 8)
    expected = np.maximum(abs(groups).max(axis=(1, 3)), 1) if "max" in update else groups.sum(axis=(1, 3)) + 1
    np.testing.assert_array_equal(np.asarray(kernel(x)).astype(np.float32), expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("threads", [32, 256])
def test_a_fragment_collects_along_what_it_has_no_dimension_for(threads: int, tmp_path: Path) -> None:
    """Of rows, under a condition, and of everything, beside other statements."""
    statements = """
        S = T.alloc_shared((40, 48), "float32")
        row = T.alloc_fragment((40,), "float32")
        most = T.alloc_fragment((40,), "float32")
        count = T.alloc_fragment((1,), "float32")
        T.copy(X, S)
        T.fill(row, 1)
        T.fill(most, 0)
        T.clear(count)
        for i, j in T.Parallel(40, 48):
            row[i] = row[i] + S[i, j] * 2.0 + 1.0
            if j > i:
                most[i] = T.max(S[i, j], most[i])
                count[0] += 1.0
            S[i, j] = -S[i, j]
        for i in T.Parallel(40):
            Y[i] = row[i] + 1000 * most[i] + 1e5 * count[0] + S[i, 0]
    """
    params = 'X: T.Tensor((40, 48), "float32"), Y: T.Tensor((40,), "float32")'
    kernel = load_body(tmp_path, statements, params, threads=threads)
    x = RNG.integers(-4, 5, (40, 48)).astype(np.float32)
    above = np.triu(np.ones((40, 48), bool), 1)
    rows, most = 2 * x.sum(axis=1) + 49, np.where(above, x, 0).max(axis=1)
    np.testing.assert_array_equal(kernel(x), rows + 1000 * most + np.float32(1e5 * above.sum()) - x[:, 0])


def test_a_reducer_whose_elements_turns_compute(tmp_path: Path) -> None:
    statements = """
        total = T.alloc_reducer((3,), "float32", op="sum", replication="all")
        T.clear(total)
        for i, j in T.Parallel(32, 12):
            total[T.min(j // 4, 2)] += X[i, j]
        T.finalize_reducer(total)
        T.copy(total, Y)
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((32, 12), "float32"), Y: T.Tensor((3,), "float32")')
    x = RNG.integers(-9, 10, (32, 12)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x.reshape(32, 3, 4).sum(axis=(0, 2)))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("shape", "update", "loop", "expected"),
    [
        ((16, 8), "acc[j, i]", (8, 16), lambda x: x.sum(2).T),
        ((16, 16), "acc[j, i]", (16, 16), lambda x: x.sum(2).T),
        ((1, 8, 16), "acc[0, i, j]", (8, 16), lambda x: x.sum(2)[None]),
        ((16, 16), "acc[i, j]", (8, 16), lambda x: np.concatenate([x.sum(2), np.zeros((8, 16))])),
        ((16, 16), "acc[i + 8, j]", (8, 16), lambda x: np.concatenate([np.zeros((8, 16)), x.sum(2)])),
    ],
    ids=["transposed", "transposed square", "unit dimension", "first half", "second half"],
)
def test_an_update_that_does_not_run_over_a_reducer_in_its_order(
    shape: tuple[int, ...], update: str, loop: tuple[int, int], expected: Callable[..., np.ndarray], tmp_path: Path
) -> None:
    kernel = load_body(
        tmp_path,
        f"""
        acc = T.alloc_reducer({shape}, "float32", op="sum")
        T.fill(acc, 0)
        for i, j, k in T.Parallel({loop[0]}, {loop[1]}, 4):
            {update} += X[i, j, k]
        T.finalize_reducer(acc)
        T.copy(acc, Y)
        """,
        f"X: T.Tensor(({loop[0]}, {loop[1]}, 4), 'float32'), Y: T.Tensor({shape}, 'float32')",
        threads=128,
    )
    x = np.arange(loop[0] * loop[1] * 4, dtype=np.float32).reshape(*loop, 4) % 17
    np.testing.assert_array_equal(kernel(x), expected(x))


def test_an_array_of_each_thread_is_reduced_into_a_variable(tmp_path: Path) -> None:
    statements = """
        mine = T.alloc_local((8,), "float32")
        total = T.alloc_var("float32")
        largest = T.alloc_var("float32", init=2.0)
        t = T.get_thread_binding()
        for i in T.serial(8):
            mine[i] = X[t, i]
        T.reduce_sum(mine, total, dim=0)
        T.reduce_max(mine, largest, dim=0, clear=False)
        Y[t, 0] = total
        Y[t, 1] = largest
    """
    params = 'X: T.Tensor((128, 8), "float32"), Y: T.Tensor((128, 2), "float32")'
    x = np.random.default_rng(0).integers(-4, 5, (128, 8)).astype(np.float32)
    expected = np.stack([x.sum(axis=1), np.maximum(x.max(axis=1), 2)], axis=1)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), expected)
