"""Elements of memory that all threads of a block update alike: each update happens once."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(0)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    "update",
    ["S[7] = S[7] + total[0] * 2.0", "S[7] += total[0] * 2.0", "S[at[0]] = total[0] * 2.0 + S[7]"],
)
@pytest.mark.parametrize(("scope", "target"), [("shared", "cuda:sm_80"), ("fragment", "cuda:sm_90a")])
def test_an_element_of_a_shared_tile(update: str, scope: str, target: str, tmp_path: Path) -> None:
    """With 256 threads in any order, on every turn of a loop."""
    statements = f"""
        S = T.alloc_shared((64,), "float32")
        L = T.alloc_fragment((64,), "float32")
        total = T.alloc_{scope}((1,), "float32")
        T.copy(X[bx * 64], S)
        for turn in T.serial(3):
            T.copy(S, L)
            T.reduce_sum(L, total, dim=0)
            {update}
        T.copy(S, Y[bx * 64])
    """
    params = 'X: T.Tensor((N,), "float32"), at: T.Tensor((1,), "int32"), Y: T.Tensor((N,), "float32")'
    grid = {"grid": "T.ceildiv(N, 64)", "arguments": "N", "threads": 256}
    kernel = load_body(tmp_path, statements, params, **grid, target=target)
    x = RNG.integers(-9, 10, 192).astype(np.float32)
    expected = x.astype(np.float64).reshape(3, 64)
    for _ in range(3):
        expected[:, 7] += 2 * expected.sum(axis=1)
    np.testing.assert_array_equal(kernel(x, np.array([7], np.int32)), expected.ravel())


def test_an_element_of_a_tensor(tmp_path: Path) -> None:
    statements = """
        for turn in T.serial(3):
            Y[bx] = Y[bx] * 2.0 + X[bx]
            if bx > 1:
                Y[bx] -= 1.0
    """
    params = 'X: T.Tensor((5,), "float32"), Y: T.Tensor((5,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="5")
    x, y = (RNG.integers(-9, 10, 5).astype(np.float32) for _ in range(2))
    expected = y.copy()
    for _ in range(3):
        expected = expected * 2 + x - (np.arange(5) > 1)
    kernel(x, y)
    np.testing.assert_array_equal(y, expected)


def test_what_is_made_of_other_elements_needs_no_barrier(tmp_path: Path) -> None:
    """A running sum: each thread reads what it has written itself, and all write the same."""
    statements = """
        S = T.alloc_shared((64,), "float32")
        S[0] = X[0]
        for i in T.serial(1, 64):
            S[i] = S[i - 1] + X[i]
        T.copy(S, Y[0])
    """
    params = 'X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")'
    kernel = load_body(tmp_path, statements, params)
    x = RNG.integers(-9, 10, 64).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), np.cumsum(x))
    assert "S_new" not in kernel.source


def test_stores_that_are_left_to_one_thread_share_a_branch(tmp_path: Path) -> None:
    """Several threads hold a row's sum: all add to it, and one of them writes it, and its square."""
    statements = """
        x = T.alloc_fragment((8, 64), "float32")
        part = T.alloc_fragment((8,), "float32")
        total = T.alloc_fragment((8,), "float32")
        S = T.alloc_shared((2, 8), "float32")
        T.clear(total)
        for turn in T.serial(2):
            T.copy(X[0, turn * 64], x)
            T.reduce_sum(x, part, dim=1)
            for i in T.Parallel(8):
                total[i] += part[i]
                S[0, i] = total[i]
                S[1, i] = total[i] * total[i]
        T.copy(S, Y)
    """
    params = 'X: T.Tensor((8, 128), "float32"), Y: T.Tensor((2, 8), "float32")'
    kernel = load_body(tmp_path, statements, params)
    x = RNG.integers(-9, 10, (8, 128)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), [x.sum(axis=1), x.sum(axis=1) ** 2])
    assert kernel.source.count("if (tl::is_writer(") == 1


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_a_group_of_threads_updates_an_element_once(target: str, tmp_path: Path) -> None:
    """Of each of two groups one thread, with the values that all threads of the group hold."""
    statements = """
        S = T.alloc_shared((4,), "float32")
        L = T.alloc_fragment((64,), "float32")
        total = T.alloc_fragment((1,), "float32")
        tx = T.get_thread_binding()
        T.clear(S)
        for turn in T.serial(3):
            if tx < 128:
                T.copy(X[bx * 64], L)
                T.reduce_sum(L, total, dim=0)
                S[1] += total[0]
            else:
                T.copy(X[bx * 64], L)
                T.reduce_max(L, total, dim=0)
                S[2] = S[2] + total[0] * 2.0
        T.copy(S, Y[bx * 4])
    """
    params = 'X: T.Tensor((128,), "float32"), Y: T.Tensor((8,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="2", threads=256, target=target)
    x = RNG.integers(-9, 10, 128).astype(np.float32)
    parts = x.reshape(2, 64)
    expected = np.zeros((2, 4), np.float32)
    expected[:, 1], expected[:, 2] = 3 * parts.sum(axis=1), 6 * parts.max(axis=1)
    np.testing.assert_array_equal(kernel(x), expected.ravel())
