"""Fragments that a loop names by one index for several variables, by names of indices, and by values of turns."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(0)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("index", ["i * 8 + j", "j + 8 * i", "base + j"])
def test_several_variables_count_a_fragments_elements(index: str, tmp_path: Path) -> None:
    """The loop runs where the fragment lies: nothing goes through shared memory."""
    statements = f"""
        F = T.alloc_fragment((1024,), "float32")
        G = T.alloc_fragment((1024,), "float32")
        T.copy(X[bx * 1024], F)
        for i, j in T.Parallel(many, 8):
            base = i * 8
            k = {index}
            G[{index}] = F[k] * 2.0 + T.if_then_else(i % 3 == 0, W[j], X[(bx * 128 + i) * 8 + j])
        T.copy(G, Y[bx * 1024])
    """
    params = 'X: T.Tensor((N,), "float32"), W: T.Tensor((8,), "float32"), Y: T.Tensor((N,), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(N, 1024)", arguments="N, many=128")
    x, w = RNG.integers(-9, 10, 2500).astype(np.float32), RNG.integers(-9, 10, 8).astype(np.float32)
    place = np.arange(2500)
    expected = 2 * x + np.where(place % 1024 // 8 % 3 == 0, w[place % 8], x)
    np.testing.assert_array_equal(kernel(x, w), expected)
    text = kernel.source.partition("__global__")[2].partition("---- host")[0]
    assert "shared" not in text
    assert "many" not in kernel.source.partition("#include")[2], "a constant that nothing names any more is not there"


def test_a_part_of_the_variables_counts_a_dimension(tmp_path: Path) -> None:
    statements = """
        F = T.alloc_fragment((4, 64), "float32")
        T.copy(X[bx * 4, 0], F)
        for r, i, j in T.Parallel(4, 16, 4):
            F[r, i * 4 + j] = F[r, i * 4 + j] * 2.0 + W[bx * 4 + r, i, j]
        T.copy(F, Y[bx * 4, 0])
    """
    params = 'X: T.Tensor((M, 64), "float32"), W: T.Tensor((M, 16, 4), "float32"), Y: T.Tensor((M, 64), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 4)", arguments="M")
    x, w = RNG.integers(-9, 10, (10, 64)).astype(np.float32), RNG.integers(-9, 10, (10, 16, 4)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x, w), 2 * x + w.reshape(10, 64))
    assert "shared" not in kernel.source.partition("__global__")[2].partition("---- host")[0]


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("naming", "expected"),
    [
        ("k = i", lambda x: 2 * x),
        ("k = 127 - i", lambda x: 2 * x),
        ("k = T.alloc_var('int32')\nk = i ^ 1", lambda x: 2 * x),
    ],
    ids=["a name of the variable", "counted down", "assigned"],
)
def test_names_of_indices_differ_from_thread_to_thread(naming: str, expected, tmp_path: Path) -> None:
    """A fragment that is indexed by such a name is not held by every thread."""
    named = naming.replace("\n", "\n            ")
    statements = f"""
        F = T.alloc_fragment((128,), "float32")
        T.copy(X[0], F)
        for i in T.Parallel(128):
            {named}
            F[k] = F[k] * 2.0
        T.copy(F, Y[0])
    """
    params = 'X: T.Tensor((128,), "float32"), Y: T.Tensor((128,), "float32")'
    x = RNG.integers(-9, 10, 128).astype(np.float32)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), expected(x))


ONE = """
    total = T.alloc_fragment((1,), "float32")
    total[0] = 3.0
    for i in T.Parallel(128):
        {}
    Y[bx] = total[0]
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    "lines",
    [
        "if i == turn[bx]:\n    total[0] = X[i]",
        "v = X[i]\nif i == turn[bx]:\n    total[0] = v",
        "v = T.alloc_var('float32', 0.0)\nif i == turn[bx]:\n    v = X[i]\n    total[0] = v",
    ],
)
def test_all_threads_get_what_one_turn_gives_an_element(lines: str, tmp_path: Path) -> None:
    params = 'X: T.Tensor((128,), "float32"), turn: T.Tensor((3,), "int32"), Y: T.Tensor((3,), "float32")'
    kernel = load_body(tmp_path, ONE.format(lines.replace("\n", "\n        ")), params, grid="3")
    x, turn = RNG.integers(5, 10, 128).astype(np.float32), np.array([0, 77, 200], np.int32)
    np.testing.assert_array_equal(kernel(x, turn), [x[0], x[77], 3])


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("lines", ["total[0] += X[i]", "v = X[i]\ntotal[0] += v", "total[0] = X[i] + total[0]"])
def test_a_sum_over_turns_is_no_element_of_one_thread(lines: str, tmp_path: Path) -> None:
    """All threads get what all turns give, though each of the turns is one thread's."""
    params = 'X: T.Tensor((128,), "float32"), Y: T.Tensor((1,), "float32")'
    kernel = load_body(tmp_path, ONE.format(lines.replace("\n", "\n        ")), params, threads=256)
    x = RNG.integers(5, 10, 128).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), [x.sum() + 3])


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("rows", ["T.serial(8)", "T.unroll(8)", "range(8)"])
def test_a_loop_over_rows_is_one_over_elements(rows: str, tmp_path: Path) -> None:
    """Nothing goes through shared memory, row by row."""
    statements = f"""
        F = T.alloc_fragment((8, 96), "float32")
        total = T.alloc_fragment((8,), "float32")
        for i in {rows}:
            for j in T.Parallel(96):
                F[i, j] = T.if_then_else(T.And(bx * 8 + i < M, j < N), X[bx * 8 + i, j], 0.0)
        T.reduce_sum(F, total, dim=1)
        for i in {rows}:
            for j in T.Parallel(96):
                value = F[i, j] - total[i]
                F[i, j] = value * 2.0
        T.copy(F, Y[bx * 8, 0])
    """
    params = 'X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, 96), "float32")'
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 8)", arguments="M, N")
    x = RNG.integers(-9, 10, (19, 70)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (0, 26)))
    np.testing.assert_array_equal(kernel(x), 2 * (padded - x.sum(1, keepdims=True)))
    text = kernel.source.partition("__global__")[2].partition("---- host")[0]
    assert "_staged" not in text and "for (" not in text


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("F[i + 1, j] = F[i, j] + F[i + 1, j]", lambda x: x.cumsum(0)),
        ("G[j] += F[i, j]", lambda x: x + x[:7].sum(0)),
        ("G[j] = F[i, j]", lambda x: x + x[6]),
    ],
    ids=["a running sum", "a sum of rows", "the last row"],
)
def test_rows_that_meet_one_another_come_in_order(line: str, expected, tmp_path: Path) -> None:
    statements = f"""
        F = T.alloc_fragment((8, 96), "float32")
        G = T.alloc_fragment((96,), "float32")
        T.copy(X, F)
        T.clear(G)
        for i in T.serial(7):
            for j in T.Parallel(96):
                {line}
        for i, j in T.Parallel(8, 96):
            Y[i, j] = F[i, j] + G[j]
    """
    params = 'X: T.Tensor((8, 96), "float32"), Y: T.Tensor((8, 96), "float32")'
    x = RNG.integers(-9, 10, (8, 96)).astype(np.float32)
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), expected(x))
