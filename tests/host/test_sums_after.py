"""Sums that each turn of a loop adds to: threads meet once, after the loop."""

from pathlib import Path

import numpy as np

from tests.host.kernels import load_body

RNG = np.random.default_rng(6)


def test_threads_add_up_apart_and_meet_after_the_loop(tmp_path: Path) -> None:
    """Columns in all turns and under a condition, from what the sums were before; rows in a loop within another."""
    kernel = load_body(
        tmp_path,
        """
        x = T.alloc_fragment((8, 96), "float32")
        total = T.alloc_fragment((96,), "float32")
        odd = T.alloc_fragment((96,), "float32")
        row = T.alloc_fragment((8,), "float32")
        T.copy(First, total)
        T.clear(odd)
        for t in T.serial(T.ceildiv(n, 8)):
            T.copy(X[t * 8, 0], x)
            T.reduce_sum(x, total, dim=0, clear=False)
            if t % 2 == 1:
                T.reduce_sum(x, odd, dim=0, clear=False)
            T.clear(row)
            for part in T.serial(3):
                for i, j in T.Parallel(8, 96):
                    x[i, j] = x[i, j] + part
                T.reduce_sum(x, row, dim=1, clear=False)
            for i in T.Parallel(8):
                if t * 8 + i < n:
                    Rows[t * 8 + i] = row[i]
        T.copy(total, Y[0, 0])
        T.copy(odd, Y[1, 0])
        """,
        """X: T.Tensor((n, 96), "float32"), First: T.Tensor((96,), "float32"), Rows: T.Tensor((n,), "float32"),
           Y: T.Tensor((2, 96), "float32")""",
        arguments="n",
    )
    x, first = RNG.integers(-9, 10, (37, 96)).astype(np.float32), RNG.integers(-9, 10, 96).astype(np.float32)
    rows = np.zeros(37, np.float32)
    found = kernel(x, first, rows)
    np.testing.assert_array_equal(found[0], x.sum(axis=0) + first)
    np.testing.assert_array_equal(found[1], sum(x[t * 8 : t * 8 + 8].sum(axis=0) for t in range(1, 5, 2)))
    np.testing.assert_array_equal(rows, 3 * x.sum(axis=1) + 96 * (0 + 1 + 3))
    for name in ("total", "odd", "row"):
        assert f"{name}_parts(i, j) += x(i, j)" in kernel.source  # the loops of i and j are other scopes


def test_sums_that_the_loop_reads_meet_in_each_turn(tmp_path: Path) -> None:
    kernel = load_body(
        tmp_path,
        """
        x = T.alloc_fragment((8, 96), "float32")
        total = T.alloc_fragment((96,), "float32")
        T.clear(total)
        for t in T.serial(4):
            T.copy(X[t * 8, 0], x)
            T.reduce_sum(x, total, dim=0, clear=False)
            T.copy(total, Y[t, 0])
        """,
        'X: T.Tensor((32, 96), "float32"), Y: T.Tensor((4, 96), "float32")',
    )
    x = RNG.integers(-9, 10, (32, 96)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), np.cumsum(x.reshape(4, 8, 96).sum(axis=1), axis=0))
    assert "_parts" not in kernel.source
