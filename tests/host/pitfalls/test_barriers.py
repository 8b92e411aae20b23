"""Where barriers stand, and what needs none, as tile compilers got it wrong before."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tests.host.pitfalls.inputs import integers
from tile2cu.core.errors import Tile2CuError


def test_an_atomic_on_a_shared_element_is_seen_by_the_threads_that_read_it(tmp_path: Path) -> None:
    statements = """
        held = T.alloc_shared((256,), "int32")
        tx = T.get_thread_binding()
        held[tx ^ 1] = X[tx]
        T.atomic_add(held[(tx * 5) % 256], tx)
        Y[tx] = held[tx ^ 64]
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((256,), "int32"), Y: T.Tensor((256,), "int32")', threads=256)
    x, tx = integers(256, dtype=np.int32), np.arange(256)
    held = np.zeros(256, np.int32)
    held[tx ^ 1] = x
    held[(tx * 5) % 256] += tx.astype(np.int32)
    np.testing.assert_array_equal(kernel(x), held[tx ^ 64])


def test_what_some_lanes_exchange_needs_no_barrier_in_their_branch(tmp_path: Path) -> None:
    statements = """
        held = T.alloc_shared((96,), "int32")
        tx = T.get_thread_binding()
        held[tx] = X[tx]
        if tx % 2 == 0:
            old = held[tx]
            held[tx ^ 1] = old + 1
        Y[tx] = held[95 - tx]
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((96,), "int32"), Y: T.Tensor((96,), "int32")', threads=96)
    x = integers(96, dtype=np.int32)
    held = x.copy()
    held[1::2] = x[::2] + 1
    np.testing.assert_array_equal(kernel(x), held[::-1])


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("second", "barriers"),
    [
        ("for i, j in T.Parallel(32, 64):\n            held[i, j] = held[i, j] * 2", 1),
        ("for i, j in T.Parallel(32, 64):\n            if i > 3:\n                held[i, j] = held[i, j] * 2 + j", 1),
        # Element by element, lanes side by side have neighbours: others than those that wrote packets.
        ("for i, j in T.Parallel(32, 64):\n            if j > 3:\n                held[i, j] = held[i, j] * 2 + j", 2),
        ("for i, j in T.Parallel(32, 64):\n            held[i, j] = held[i, j] + other[31 - i, j]", 2),
        ("for j, i in T.Parallel(64, 32):\n            held[i, j] = held[i, j] * 2", 2),
        ("for i, j in T.Parallel(32, 32):\n            held[i, j] = held[i, j] * 2", 2),
    ],
)
def test_threads_that_come_back_to_their_own_elements_need_no_barrier(
    second: str, barriers: int, tmp_path: Path
) -> None:
    statements = f"""
        held, other = T.alloc_shared((32, 64), "float32"), T.alloc_shared((32, 64), "float32")
        for i, j in T.Parallel(32, 64):
            held[i, j] = X[i, j]
            other[i, j] = X[i, j] + 1
        {second}
        T.copy(held, Y)
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((32, 64), "float32"), Y: T.Tensor((32, 64), "float32")')
    x = integers(32, 64)
    expected = x.copy()
    if "other" in second:
        expected = x + x[::-1] + 1
    elif "i > 3" in second:
        expected[4:] = x[4:] * 2 + np.arange(64)
    elif "j > 3" in second:
        expected[:, 4:] = x[:, 4:] * 2 + np.arange(4, 64)
    else:
        columns = 32 if "(32, 32)" in second else 64
        expected[:, :columns] *= 2
    np.testing.assert_array_equal(kernel(x), expected)
    assert kernel.source.count("tl::sync_threads();") == barriers


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize(
    ("there", "barriers"), [("tx", 0), ("tx ^ 0", 0), ("(tx + 1) % 64", 1), ("tx // 2", 1), ("63 - (63 - tx)", 0)]
)
def test_elements_named_by_the_thread_need_a_barrier_where_they_are_another_threads(
    there: str, barriers: int, tmp_path: Path
) -> None:
    statements = f"""
        held = T.alloc_shared((64,), "float32")
        tx = T.get_thread_binding()
        held[tx] = X[tx]
        there = {there}
        Y[tx] = held[there] + 1
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")', threads=64)
    x = integers(64)
    np.testing.assert_array_equal(kernel(x), x[eval(there, {"tx": np.arange(64)})] + 1)
    assert kernel.source.count("tl::sync_threads();") == barriers


def test_a_condition_is_asked_again_after_its_element_changed(tmp_path: Path) -> None:
    statements = """
        tx = T.get_thread_binding()
        value = T.alloc_local((2,), "int32")
        value[0] = X[tx]
        value[1] = 7
        if value[0] > 0:
            value[0] = 0
        if value[0] > 0:
            value[1] = 1
        Y[tx, 0] = value[0]
        Y[tx, 1] = value[1]
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((32,), "int32"), Y: T.Tensor((32, 2), "int32")', threads=32)
    x = integers(32, dtype=np.int32)
    np.testing.assert_array_equal(kernel(x), np.stack([np.minimum(x, 0), np.full(32, 7)], axis=1))


def test_a_value_that_was_read_before_its_element_is_written_stays(tmp_path: Path) -> None:
    statements = """
        for i in T.Parallel(128):
            at = bx * 128 + i
            first = T.max(X[at], 1)
            Y[at] = first / 2
            X[at] = first * 2
            Y[at] += first
    """
    params = 'X: T.Tensor((300,), "float32"), Y: T.Tensor((300,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(300, 128)")
    x = integers(300)
    first = np.maximum(x, 1)
    np.testing.assert_array_equal(kernel(x), first / 2 + first)
    np.testing.assert_array_equal(x, first * 2)


_COUNTS = """
    S = T.alloc_shared((16, 32), "float32")
    ends = T.alloc_shared((5,), "int32")
    low, high = T.alloc_local((1,), "int32"), T.alloc_local((1,), "int32")
    tx = T.get_thread_binding()
    {scan}
    if bx < ends[4]:
        low[0] = 0
        high[0] = 3
        for step in T.serial(2):
            middle = (low[0] + high[0]) // 2
            if ends[middle + 1] <= bx:
                low[0] = middle + 1
            else:
                high[0] = middle
        {rows}
"""
_ROWS = """T.copy(X[low[0] * 16, 0], S)
        for i, j in T.Parallel(16, 32):
            Y[bx * 16 + i, j] = S[15 - i, j]"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    "scan",
    [
        """ends[0] = 0
    for k in T.serial(4):
        ends[k + 1] = ends[k] + sizes[k]""",
        """if tx == 37:
        ends[0] = 0
        for k in T.serial(4):
            if ends[k] >= 0:
                ends[k + 1] = ends[k] + sizes[k]""",
    ],
    ids=["all threads", "one thread"],
)
def test_a_branch_on_a_shared_element_is_one_that_all_threads_take(scan: str, tmp_path: Path) -> None:
    statements = _COUNTS.format(scan=scan, rows=_ROWS)
    params = 'X: T.Tensor((64, 32), "float32"), sizes: T.Tensor((4,), "int32"), Y: T.Tensor((96, 32), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="6")
    x, y = integers(64, 32, dtype=np.float32), np.zeros((96, 32), np.float32)
    sizes = np.array([2, 0, 1, 2], np.int32)
    kernel(x, sizes, y)
    owners = np.repeat(np.arange(4), sizes)
    np.testing.assert_array_equal(y[:80].reshape(5, 16, 32), x.reshape(4, 16, 32)[owners, ::-1])
    assert not y[80:].any()


def test_a_loop_that_ends_by_a_shared_element_has_a_barrier_behind_each_iteration(tmp_path: Path) -> None:
    statements = """
        left = T.alloc_shared((1,), "int32")
        tx = T.get_thread_binding()
        left[0] = 3
        while left[0] > 0:
            left[0] = left[0] - 1
        Y[tx] = left[0]
    """
    kernel = load_body(tmp_path, statements, 'Y: T.Tensor((128,), "int32")')
    y = np.ones(128, np.int32)
    kernel(y)
    assert not y.any() and kernel.source.count("sync_threads") == 3


def test_a_branch_in_a_loop_of_each_threads_own_rows_has_no_barrier(tmp_path: Path) -> None:
    """Threads come to a loop's iterations a different number of times: the order of what they access is the user's."""
    statements = """
        tx = T.get_thread_binding()
        for i in T.serial(tx, M, 128):
            for j in T.serial(1, 4):
                if X[i, j] == X[i, j - 1]:
                    X[i, j] = -1
    """
    kernel = load_body(tmp_path, statements, 'X: T.Tensor((M, 4), "int32")', arguments="M")
    x = np.random.default_rng(4).integers(0, 2, (300, 4)).astype(np.int32)
    expected = x.copy()
    for j in range(1, 4):
        expected[:, j] = np.where(expected[:, j] == expected[:, j - 1], -1, expected[:, j])
    kernel(x)
    np.testing.assert_array_equal(x, expected)
    assert "sync_threads" not in kernel.source


def test_one_thread_of_a_group_comes_back_to_what_it_wrote(tmp_path: Path) -> None:
    statements = """
        ends = T.alloc_shared((5,), "int32")
        ready = T.alloc_barrier([128])
        tx = T.get_thread_binding()
        if tx < 128:
            if tx == 0:
                ends[0] = 0
                for k in T.serial(4):
                    ends[k + 1] = ends[k] + sizes[k]
            T.barrier_arrive(ready)
        else:
            T.barrier_wait(ready, 0)
            Y[tx - 128] = ends[tx % 5]
    """
    params = 'sizes: T.Tensor((4,), "int32"), Y: T.Tensor((128,), "int32")'
    kernel = load_body(tmp_path, statements, params, threads=256, target="cuda:sm_90a")
    sizes = np.array([2, 0, 1, 2], np.int32)
    np.testing.assert_array_equal(kernel(sizes), np.array([0, 2, 2, 3, 5])[np.arange(128, 256) % 5])


@pytest.mark.parametrize(
    ("then", "other"),
    [("T.barrier_arrive(ready)", "pass"), ("pass", "T.barrier_wait(ready, 0)"), ("T.barrier_arrive(ready)",) * 2],
    ids=["nobody waits", "nobody arrives", "both arrive"],
)
def test_arms_are_ordered_only_where_one_waits_for_the_other(then: str, other: str, tmp_path: Path) -> None:
    statements = f"""
        S = T.alloc_shared((64,), "int32")
        ready = T.alloc_barrier([64])
        tx = T.get_thread_binding()
        if tx < 64:
            S[tx] = X[tx]
            {then}
        else:
            {other}
            Y[tx - 64] = S[127 - tx]
    """
    with pytest.raises(Tile2CuError) as caught:
        load_body(
            tmp_path, statements, 'X: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")', target="cuda:sm_90a"
        )
    assert caught.value.code == "T2C-P002"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("first", [True, False], ids=["writer first", "reader first"])
def test_arms_that_exchange_a_tile_by_a_barrier_of_the_file_need_no_other(first: bool, tmp_path: Path) -> None:
    writes, reads = (
        "S[tx % 64] = X[tx % 64]\n            T.barrier_arrive(ready)",
        "T.barrier_wait(ready, 0)\n            Y[tx % 64] = S[63 - tx % 64]",
    )
    statements = f"""
        S = T.alloc_shared((64,), "int32")
        ready = T.alloc_barrier([64])
        tx = T.get_thread_binding()
        if tx < 64:
            {writes if first else reads}
        else:
            {reads if first else writes}
    """
    params = 'X: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")'
    kernel = load_body(tmp_path, statements, params, threads=128, target="cuda:sm_90a")
    x = integers(64, dtype=np.int32)
    np.testing.assert_array_equal(kernel(x), x[::-1])
