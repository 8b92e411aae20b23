"""Atomic updates of elements, their old values, loads, stores and orders."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import CheckError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("memory", ["shared", "global"])
def test_old_values_number_what_is_kept(memory: str, tmp_path: Path) -> None:
    """A compaction: each element that is kept takes the next place."""
    count = "count_shared" if memory == "shared" else "Count"
    statements = f"""
        count_shared = T.alloc_shared((1,), "int32")
        tx = T.get_thread_binding()
        if tx == 0:
            count_shared[0] = 0
        T.sync_threads()
        for i in T.Parallel(300):
            if X[i] > 0:
                place = T.atomic_add({count}[0], 1, return_prev=True)
                Y[place] = X[i]
    """
    params = 'X: T.Tensor((300,), "int32"), Count: T.Tensor((1,), "int32"), Y: T.Tensor((300,), "int32")'
    kernel = load_body(tmp_path, statements, params)
    x = RNG.integers(-50, 50, 300).astype(np.int32)
    kept = np.sort(x[x > 0])
    np.testing.assert_array_equal(np.sort(kernel(x, np.zeros(1, np.int32))[: len(kept)]), kept)
    assert "previous = tl::atomic_add(" in kernel.source


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int16", "int32", "uint32", "int64"])
def test_every_type_gives_its_old_value(dtype: str, tmp_path: Path) -> None:
    statements = """
        tx = T.get_thread_binding()
        if tx < 90:
            added = T.atomic_add(X[0, tx // 3], 3, return_prev=True)
            Old[0, tx] = added
            Old[1, tx] = T.atomic_max(X[1, tx // 3], tx % 3, return_prev=True)
            Old[2, tx] = T.atomic_min(X[2, tx // 3], tx % 3, return_prev=True, memory_order="acq_rel")
        for i in T.Parallel(90):
            Y[i] = X[i // 30, i % 30]
    """
    params = f"X: T.Tensor((3, 30), {dtype!r}), Old: T.Tensor((3, 90), {dtype!r}), Y: T.Tensor((90,), {dtype!r})"
    numpy = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    x, old = RNG.integers(0, 5, (3, 30)).astype(numpy), np.zeros((3, 90), numpy)
    kernel = load_body(tmp_path, statements, params, check=False)
    values, start = x.copy(), x.astype(float)
    kernel(values, old)
    after = values.astype(float)
    np.testing.assert_array_equal(after[0], start[0] + 9)
    np.testing.assert_array_equal(after[1], np.maximum(start[1], 2))
    np.testing.assert_array_equal(after[2], 0)
    added, largest, smallest = np.sort(old.astype(float).reshape(3, 30, 3))
    np.testing.assert_array_equal(added, start[0][:, None] + [0, 3, 6])
    np.testing.assert_array_equal(largest[:, 0], start[1])
    np.testing.assert_array_equal(smallest[:, 2], start[2])


def test_the_last_block_adds_up_what_the_others_published(tmp_path: Path) -> None:
    statements = """
        own = T.alloc_fragment((64,), "float32")
        total = T.alloc_fragment((1,), "float32")
        parts = T.alloc_fragment((5,), "float32")
        last = T.alloc_shared((1,), "int32")
        tx = T.get_thread_binding()
        T.copy(X[bx * 64], own)
        T.reduce_sum(own, total, dim=0)
        if tx == 0:
            T.atomic_store(Parts[bx], total[0], memory_order="relaxed")
            last[0] = T.atomic_add(Count[0], 1, memory_order="acq_rel", return_prev=True)
        T.sync_threads()
        if last[0] == 4:
            for i in T.Parallel(5):
                parts[i] = T.atomic_load(Parts[i], memory_order="acquire")
            T.reduce_sum(parts, total, dim=0)
            Y[0] = total[0]
    """
    params = (
        'X: T.Tensor((300,), "float32"), Parts: T.Tensor((5,), "float32"), Count: T.Tensor((1,), "int32"), '
        'Y: T.Tensor((1,), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, grid="5")
    x = RNG.integers(-9, 9, 300).astype(np.float32)
    np.testing.assert_array_equal(kernel(x, np.zeros(5, np.float32), np.zeros(1, np.int32)), [x.sum()])


def test_a_thread_waits_for_another(tmp_path: Path) -> None:
    statements = """
        flag = T.alloc_shared((1,), "int32")
        value = T.alloc_shared((1,), "int32")
        tx = T.get_thread_binding()
        if tx == 0:
            flag[0] = 0
        T.sync_threads()
        if tx == 64:
            T.atomic_store(value[0], X[0], memory_order="relaxed")
            T.atomic_store(flag[0], 1, memory_order="release")
        if tx < 32:
            while T.atomic_load(flag[0], memory_order="acquire") == 0:
                T.evaluate(0) if False else None
            Y[tx] = T.atomic_load(value[0])
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((1,), "int32"), Y: T.Tensor((32,), "int32")')
    np.testing.assert_array_equal(kernel(np.array([7], np.int32)), np.full(32, 7))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_packets_are_slices_or_begin_at_an_element_and_give_what_was_there(
    width: int, dtype: str, tmp_path: Path
) -> None:
    statements = f"""
        tx = T.get_thread_binding()
        T.atomic_addx{width}(X[I[tx], 0:{width}], V[tx, 0:{width}])
        T.sync_threads()
        Y[tx, 0:{width}] = T.atomic_addx{width}(X[tx, 0], V[tx, 0], return_prev=True, memory_order="acq_rel")
        old = T.atomic_addx{width}(X[tx, 0:{width}], V[tx, 0:{width}], return_prev=True)
        Z[tx, 0:{width}] = old
    """
    params = ", ".join(f'{name}: T.Tensor((32, {width}), "{dtype}")' for name in "XVYZ")
    params = params.replace("V:", 'I: T.Tensor((32,), "int32"), V:', 1)
    kernel = load_body(tmp_path, statements, params, threads=32)
    x, v = (RNG.integers(-5, 6, (32, width)).astype(dtype) for _ in range(2))
    place, y = RNG.permutation(32).astype(np.int32), np.zeros((32, width), dtype)
    after = x.copy()
    z = kernel(after, place, v, y)
    scattered = x.copy()
    scattered[place] += v
    np.testing.assert_array_equal(y, scattered)
    np.testing.assert_array_equal(z, scattered + v)
    np.testing.assert_array_equal(after, scattered + v + v)


def test_packets_of_a_loop_go_to_rows_of_a_table_in_one_call_each(tmp_path: Path) -> None:
    """Rows come several times, or lie outside; the last packet of `Line` is cut off by its end."""
    statements = """
        S = T.alloc_shared((24, 72), "float32")
        H = T.alloc_shared((24, 72), "float16")
        T.copy(V[24 * bx, 0], S)
        T.copy(V[24 * bx, 0], H)
        for i, d in T.Parallel(24, 16):
            T.atomic_addx4(X[I[24 * bx + i], 8 + d * 4], S[i, d * 4])
            T.atomic_addx2(Y[I[24 * bx + i], d * 2], S[i, 2 + d * 2])
            T.atomic_addx2(Z[I[24 * bx + i], 4 * d : 4 * d + 2], H[i, 4 * d : 4 * d + 2])
            T.atomic_addx4(X[I[24 * bx + i], d * 4 + 1], V[24 * bx + i, d * 4])
        for d in T.Parallel(5):
            T.atomic_addx4(Line[d * 4], V[24 * bx, d * 4])
    """
    params = (
        'V: T.Tensor((100, 72), "float32"), I: T.Tensor((100,), "int32"), X: T.Tensor((40, 72), "float32"), '
        'Y: T.Tensor((40, 72), "float32"), Z: T.Tensor((40, 72), "float16"), Line: T.Tensor((18,), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, grid="5")
    v = RNG.integers(-5, 6, (100, 72)).astype(np.float32)
    place = RNG.integers(-2, 44, 100).astype(np.int32)
    x, y, z = (RNG.integers(-5, 6, (40, 72)).astype(dtype) for dtype in ("float32", "float32", "float16"))
    expected = [x.copy(), y.copy(), z.copy()]
    for row, to in zip(v, place, strict=True):
        if 0 <= to < 40:
            expected[0][to, 8:72] += row[:64]
            expected[0][to, 1:65] += row[:64]
            expected[1][to, :32] += row[2:34]
            expected[2][to, :64] += np.where(np.arange(64) % 4 < 2, row[:64], 0).astype(np.float16)
    found = [x, y, z]
    line = np.zeros(18, np.float32)
    kernel(v, place, *found, line)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(line, v[::24, :18].sum(axis=0))
    text = kernel.source
    assert text.count("tl::vec<4>(") == 4 and text.count("tl::vec<2>(") == 4  # `d * 4 + 1` is not known to fit
    assert "tl::atomic_add(X(I(24 * bx + i), tl::vec<4>(8 + d * 4)), S(i, tl::vec<4>(d * 4)));" in text


def test_a_number_or_an_expression_of_tiles_is_added_to_each_element(tmp_path: Path) -> None:
    statements = """
        part = T.alloc_fragment((16, 20), "float32")
        T.copy(V[16 * bx, 0], part)
        T.atomic_add(X[16 * bx : 16 * (bx + 1), 0:20], 1.0)
        T.atomic_max(X[16 * bx : 16 * (bx + 1), 0:20], part * 2 + 1)
        T.atomic_add(Total[0:20], V[16 * bx, 0:20], memory_order="release")
        T.atomic_min(X[16 * bx, 0], part, memory_order="acq_rel")
        T.atomic_add(Y, 2)
    """
    params = (
        'V: T.Tensor((40, 20), "float32"), X: T.Tensor((40, 20), "float32"), '
        'Total: T.Tensor((20,), "float32"), Y: T.Tensor((3,), "int32")'
    )
    kernel = load_body(tmp_path, statements, params, grid="3", check=False)
    v, x = (RNG.integers(-5, 6, (40, 20)).astype(np.float32) for _ in range(2))
    total, before = np.zeros(20, np.float32), x.copy()
    count = np.ones(3, np.int32)
    kernel(v, x, total, count)
    np.testing.assert_array_equal(count, 7)
    np.testing.assert_array_equal(x, np.minimum(np.maximum(before + 1, v * 2 + 1), v))
    np.testing.assert_array_equal(total, v[[0, 16, 32]].sum(axis=0))


def test_threads_that_hold_the_same_element_update_memory_once_in_branches_and_loops(tmp_path: Path) -> None:
    statements = """
        x = T.alloc_fragment((16, 64), "float32")
        best = T.alloc_fragment((16,), "float32")
        T.copy(X[bx * 16, 0], x)
        T.reduce_max(x, best, dim=1)
        for i in T.Parallel(16):
            if bx * 16 + i < 40:
                T.atomic_add(Count[0], 1)
                if best[i] > 2:
                    T.atomic_add(Count[1], 1)
                else:
                    best[i] = 2
            for j in T.serial(2):
                if bx * 16 + i < 40:
                    T.atomic_add(Count[2 + j], 1)
            best[i] += 1
        T.copy(best, Y[bx * 16])
    """
    params = 'X: T.Tensor((40, 64), "float32"), Count: T.Tensor((4,), "int32"), Y: T.Tensor((40,), "float32")'
    x, count = RNG.integers(-60, 4, (40, 64)).astype(np.float32), np.zeros(4, np.int32)
    largest = load_body(tmp_path, statements, params, grid="3")(x, count) - 1
    np.testing.assert_array_equal(largest, np.maximum(x.max(axis=1), 2))
    np.testing.assert_array_equal(count, [40, (x.max(axis=1) > 2).sum(), 40, 40])


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("order", ["acq_rel", "seq_cst", "relaxed"])
def test_the_last_block_adds_up_what_all_of_them_wrote(order: str, tmp_path: Path) -> None:
    """An update in an order tells the other blocks what this one wrote; one without tells them nothing."""
    kernel = load_body(
        tmp_path,
        f"""
        x = T.alloc_fragment((128,), "float32")
        arrived = T.alloc_shared((1,), "int32")
        T.copy(X[bx * 128], x)
        T.copy(x, Parts[bx, 0])
        T.sync_threads()
        if T.get_thread_binding() == 0:
            arrived[0] = T.atomic_add(Counter[0], 1, memory_order="{order}", return_prev=True)
        T.sync_threads()
        if arrived[0] == 2:
            T.clear(x)
            for part in T.serial(3):
                for i in T.Parallel(128):
                    x[i] += Parts[part, i]
            T.copy(x, Y)
            if T.get_thread_binding() == 0:
                Counter[0] = 0
        """,
        """X: T.Tensor((384,), "float32"), Parts: T.Tensor((3, 128), "float32"), Counter: T.Tensor((1,), "int32"),
           Y: T.Tensor((128,), "float32")""",
        grid="3",
    )
    x, counter = RNG.integers(-9, 10, 384).astype(np.float32), np.zeros(1, np.int32)
    parts = np.zeros((3, 128), np.float32)
    if order == "relaxed":
        with pytest.raises(CheckError, match="race between blocks"):
            kernel(x, parts, counter)
    else:
        np.testing.assert_array_equal(kernel(x, parts, counter), x.reshape(3, 128).sum(axis=0))
        assert counter[0] == 0
