"""What a kernel writes and reads again: through tensors, through indices and bounds that lie in shared memory.

And what is on its way when a loop is left.
"""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(3)
BOTH = pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])


def test_a_tensor_that_other_threads_read_again(tmp_path: Path) -> None:
    kernel = load_body(
        tmp_path,
        """
        x = T.alloc_fragment((32, 64), "float32")
        y = T.alloc_fragment((64, 32), "float32")
        for turn in T.serial(2):
            T.copy(X[turn * 32, 0], x)
            T.copy(x, Between[turn * 32, 0])
        for turn in T.serial(2):
            for i, j in T.Parallel(64, 32):
                y[i, j] = Between[turn * 32 + j, i]
            T.copy(y, Y[0, turn * 32])
        """,
        'X: T.Tensor((64, 64), "float32"), Between: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")',
    )
    x = RNG.standard_normal((64, 64)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x, np.zeros_like(x)), x.T)
    assert kernel.source.count("tl::sync_threads();") == 1, "tiles that each thread comes back to need none"
    assert "// RAW: all threads have stored Between before any reads it" in kernel.source


def test_a_tensor_that_other_threads_write_again(tmp_path: Path) -> None:
    """Zeros, then sums, then single elements: three layouts."""
    kernel = load_body(
        tmp_path,
        """
        for i, j in T.Parallel(16, 96):
            Y[bx * 16 + i, j] = 0
        for i, j in T.Parallel(16, 96):
            T.atomic_add(Y[bx * 16 + i, (j + 5) % 96], X[bx * 16 + i, j])
        for i in T.Parallel(16):
            Y[bx * 16 + i, At[i]] = 9
        """,
        'X: T.Tensor((32, 96), "float32"), At: T.Tensor((16,), "int32"), Y: T.Tensor((32, 96), "float32")',
        grid="2",
    )
    x, at = RNG.integers(-9, 10, (32, 96)).astype(np.float32), RNG.permutation(96)[:16].astype(np.int32)
    expected = np.roll(x, 5, axis=1)
    expected[np.arange(32), np.tile(at, 2)] = 9
    np.testing.assert_array_equal(kernel(x, at), expected)
    assert kernel.source.count("tl::sync_threads();") == 2


def test_values_of_rows_that_change_in_place_beside_others(tmp_path: Path) -> None:
    """Several threads hold each row: none of them reads what the one that stores a row has stored."""
    kernel = load_body(
        tmp_path,
        """
        x = T.alloc_fragment((32, 64), "float32")
        tile = T.alloc_shared((32, 64), "float32")
        before = T.alloc_shared((32,), "float32")
        most = T.alloc_fragment((32,), "float32")
        step = T.alloc_fragment((32,), "float32")
        since = T.alloc_fragment((32,), "float32")
        T.fill(before, 1)
        for turn in T.serial(2):
            T.copy(X[turn * 32, 0], x)
            T.reduce_max(x, most, dim=1)
            for i in T.Parallel(32):
                step[i] = most[i] - before[i]
                before[i] = most[i]
            for i in T.Parallel(32):
                since[i] = Past[i]
                if step[i] > 0:
                    Past[i] = since[i] + step[i]
            T.copy(x, tile)
            for i in T.Parallel(32):
                for j in T.serial(64):
                    step[i] = step[i] + tile[i, j]
                    tile[i, j] = step[i]
            T.copy(tile, x)
            for i, j in T.Parallel(32, 64):
                Y[turn * 32 + i, j] = x[i, j] * 2 + step[i] + since[i]
        """,
        'X: T.Tensor((64, 64), "float32"), Past: T.Tensor((32,), "float32"), Y: T.Tensor((64, 64), "float32")',
    )
    x, past = (RNG.integers(-9, 10, shape).astype(np.float32) for shape in ((2, 32, 64), 32))
    expected, before, since = [], np.ones(32, np.float32), past.copy()
    for rows in x:
        step, before = rows.max(axis=1) - before, rows.max(axis=1)
        sums = step[:, None] + rows.cumsum(axis=1)
        expected.append(sums * 2 + sums[:, -1:] + since[:, None])
        since = since + np.maximum(step, 0)
    np.testing.assert_array_equal(kernel(x.reshape(64, 64), past), np.concatenate(expected))
    np.testing.assert_array_equal(past, since)


def test_turns_that_change_what_their_loop_counts_to(tmp_path: Path) -> None:
    """As in Python, a loop's bounds are those of when it begins; in a tile, a variable and an array of each thread."""
    kernel = load_body(
        tmp_path,
        """
        sums = T.alloc_fragment((64,), "int32")
        count = T.alloc_shared((1,), "int32")
        left = T.alloc_var("int32", init=0)
        own = T.alloc_local((1,), "int32")
        T.clear(sums)
        count[0] = N[bx]
        for turn in T.serial(count[0]):
            for i in T.Parallel(64):
                sums[i] += 1
            if count[0] < 9:
                count[0] = count[0] + 1
        for turn in T.serial(3, left - 1, -1):
            for i in T.Parallel(64):
                sums[i] += 10 * turn
            left = left + 2
        for i in T.Parallel(64):
            own[0] = 2
            for turn in T.serial(own[0] + 1):
                sums[i] += 1000
                own[0] = 0
        T.copy(sums, Y[bx * 64])
        """,
        'N: T.Tensor((2,), "int32"), Y: T.Tensor((128,), "int32")',
        grid="2",
    )
    np.testing.assert_array_equal(kernel(np.array([3, 5], np.int32)), np.repeat([3063, 3065], 64))


def test_threads_that_come_back_to_their_own_elements_of_a_tensor_need_no_barrier(tmp_path: Path) -> None:
    kernel = load_body(
        tmp_path,
        """
        x = T.alloc_fragment((16, 96), "float32")
        for turn in T.serial(2):
            T.copy(X[bx * 16, turn * 96], x)
            for i, j in T.Parallel(16, 96):
                X[bx * 16 + i, turn * 96 + j] = x[i, j] + 1
        for turn in T.serial(2):
            for i, j in T.Parallel(16, 96):
                Y[bx * 16 + i, turn * 96 + j] = X[bx * 16 + i, turn * 96 + j] * 2
        """,
        'X: T.Tensor((32, 192), "float32"), Y: T.Tensor((32, 192), "float32")',
        grid="2",
    )
    x = RNG.standard_normal((32, 192)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x.copy()), (x + 1) * 2)
    assert "sync_threads" not in kernel.source


def test_a_branch_of_some_threads_reads_what_others_wrote(tmp_path: Path) -> None:
    kernel = load_body(
        tmp_path,
        """
        tx = T.get_thread_binding()
        Between[tx] = X[tx]
        if tx < 32:
            Y[tx] = Between[127 - tx] + Between[tx]
        """,
        'X: T.Tensor((128,), "float32"), Between: T.Tensor((128,), "float32"), Y: T.Tensor((32,), "float32")',
    )
    x = RNG.standard_normal(128).astype(np.float32)
    np.testing.assert_array_equal(kernel(x, np.zeros_like(x)), x[:32] + x[:95:-1])
    assert kernel.source.count("tl::sync_threads();") == 1


PRODUCT = """
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        x = T.alloc_fragment((64, 64), "float16")
        order = T.alloc_shared((4,), "int32")
        {before}
        T.clear(C_local)
        for k in T.Pipelined({turns}, num_stages=2):
            T.copy({loaded}[0, {place} * 64], A_shared)
            T.copy(B[0, {place} * 64], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C)
"""
WRITES = """for k in T.serial(4):
            T.copy(A[0, k * 64], x)
            for i, j in T.Parallel(64, 64):
                x[i, j] += T.float16(1)
            T.copy(x, More[0, k * 64])"""


@pytest.mark.sweep(cases=1)
@BOTH
@pytest.mark.parametrize(
    ("before", "turns", "loaded", "place"),
    [
        (WRITES, "4", "More", "k"),
        ("T.copy(Order, order)", "4", "A", "order[k]"),
        ("T.copy(Order, order)", "order[0]", "A", "k"),
    ],
    ids=["tensor", "index", "turns"],
)
def test_loads_come_behind_what_they_need(
    before: str, turns: str, loaded: str, place: str, target: str, tmp_path: Path
) -> None:
    """A producer would load before the others have written: without one, behind a barrier."""
    kernel = load_body(
        tmp_path,
        PRODUCT.format(before=before, turns=turns, loaded=loaded, place=place),
        'A: T.Tensor((64, 256), "float16"), B: T.Tensor((64, 256), "float16"), More: T.Tensor((64, 256), "float16"), '
        'Order: T.Tensor((4,), "int32"), C: T.Tensor((64, 64), "float32")',
        target=target,
    )
    a, b = (RNG.integers(-4, 5, (64, 256)).astype(np.float16) for _ in range(2))
    order = np.array([3, 0, 2, 1], np.int32)
    c = kernel(a, b, np.zeros_like(a), order)
    a, b = (a + 1 if loaded == "More" else a).astype(np.float64), b.astype(np.float64)
    last = 192 if turns == "order[0]" else 256
    np.testing.assert_array_equal(c, a[:, :last] @ b[:, :last].T)
    assert "TmaPipeline" not in kernel.source and "tl::sync_threads();" in kernel.source


def test_an_index_of_a_copy_and_the_turns_of_a_loop_lie_in_shared_memory(tmp_path: Path) -> None:
    kernel = load_body(
        tmp_path,
        """
        order = T.alloc_shared((4,), "int32")
        x = T.alloc_fragment((32, 64), "float32")
        T.copy(Order, order)
        for k in T.serial(order[0]):
            T.copy(X[0, order[k] * 64], x)
            T.copy(x, Y[0, k * 64])
        """,
        'X: T.Tensor((32, 256), "float32"), Order: T.Tensor((4,), "int32"), Y: T.Tensor((32, 192), "float32")',
    )
    x, order = RNG.standard_normal((32, 256)).astype(np.float32), np.array([3, 0, 2, 1], np.int32)
    y = kernel(x, order).reshape(32, 3, 64)
    np.testing.assert_array_equal(y, x.reshape(32, 4, 64)[:, order[:3]])


@pytest.mark.sweep(cases=1)
@BOTH
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("way", ["break", "continue", "branch"])
def test_a_pipelined_loop_of_which_some_turns_multiply(way: str, stages: int, target: str, tmp_path: Path) -> None:
    """What was loaded ahead lands, though nobody reads it; behind a break a producer would wait for ever."""
    product = "T.gemm(A_shared, B_shared, C_local, transpose_B=True)"
    turn = f"if k < Last[bx]:\n                {product}"
    if way != "branch":
        turn = f"if k >= Last[bx]:\n                {way}\n            {product}"
    kernel = load_body(
        tmp_path,
        f"""
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        for k in T.Pipelined(4, num_stages={stages}):
            T.copy(A[0, k * 64], A_shared)
            T.copy(B[0, k * 64], B_shared)
            {turn}
        T.copy(C_local, C[bx * 64, 0])
        """,
        'A: T.Tensor((64, 256), "float16"), B: T.Tensor((64, 256), "float16"), Last: T.Tensor((3,), "int32"), '
        'C: T.Tensor((192, 64), "float32")',
        grid="3",
        target=target,
    )
    a, b = (RNG.integers(-4, 5, (64, 256)).astype(np.float16) for _ in range(2))
    last = np.array([2, 0, 7], np.int32)
    c = kernel(a, b, last).reshape(3, 64, 64)
    a, b = a.astype(np.float64), b.astype(np.float64)
    np.testing.assert_array_equal(c, [a[:, : 64 * n] @ b[:, : 64 * n].T for n in last])
    assert ("tl::TmaPipeline" in kernel.source) == (target == "cuda:sm_90a" and way != "break")


@pytest.mark.sweep(cases=1)
@BOTH
def test_one_thread_lists_what_all_load(target: str, tmp_path: Path) -> None:
    """What it does to its list by itself needs no barrier, which it could not wait at; the others wait for the list."""
    kernel = load_body(
        tmp_path,
        """
        A_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        order = T.alloc_shared((4,), "int32")
        count = T.alloc_shared((1,), "int32")
        tx = T.get_thread_binding()
        T.clear(C_local)
        if tx == 32 and Use[0] >= 0:
            count[0] = 0
            for i in T.serial(4):
                if Use[i] > 0:
                    order[count[0]] = i
                    count[0] = count[0] + 1
        for k in T.Pipelined(count[0], num_stages=2):
            T.copy(A[0, order[k] * 64], A_shared)
            T.gemm(A_shared, A_shared, C_local, transpose_B=True)
        T.copy(C_local, C)
        """,
        'A: T.Tensor((64, 256), "float16"), Use: T.Tensor((4,), "int32"), C: T.Tensor((64, 64), "float32")',
        target=target,
    )
    a = RNG.integers(-4, 5, (64, 256)).astype(np.float16)
    used = a.astype(np.float64).reshape(64, 4, 64)[:, [0, 2, 3]].reshape(64, 192)
    np.testing.assert_array_equal(kernel(a, np.array([1, 0, 1, 1], np.int32)), used @ used.T)
    assert kernel.source.count("tl::sync_threads();") == 2, "behind the list, and of the pipeline"


@pytest.mark.sweep(cases=1)
@BOTH
@pytest.mark.parametrize("place", ["now", "State"])
def test_the_next_load_is_where_this_turn_says(place: str, target: str, tmp_path: Path) -> None:
    kernel = load_body(
        tmp_path,
        f"""
        A_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        now = T.alloc_shared((1,), "int32")
        tx = T.get_thread_binding()
        T.clear(C_local)
        if tx == 0:
            {place}[0] = 2
        for k in T.Pipelined(3, num_stages=2):
            at = {place}[0]
            T.copy(A[0, at * 64], A_shared)
            T.gemm(A_shared, A_shared, C_local, transpose_B=True)
            if tx == 0:
                {place}[0] = Next[{place}[0]]
        T.copy(C_local, C)
        """,
        'A: T.Tensor((64, 256), "float16"), Next: T.Tensor((4,), "int32"), State: T.Tensor((1,), "int32"), '
        'C: T.Tensor((64, 64), "float32")',
        target=target,
    )
    a = RNG.integers(-4, 5, (64, 256)).astype(np.float16)
    used = a.astype(np.float64).reshape(64, 4, 64)[:, [2, 1, 0]].reshape(64, 192)
    np.testing.assert_array_equal(kernel(a, np.array([3, 0, 1, 2], np.int32), np.zeros(1, np.int32)), used @ used.T)
