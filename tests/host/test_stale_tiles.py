"""A tile that is read where nothing has written it is reported, also where it has the memory of an earlier tile."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel

# One after the other, the tiles take more than a block has: sm_90a 232,448 bytes, sm_89 101,376.
FORWARD = """
        kept = T.alloc_shared((64,), "float32")
        one = T.alloc_shared(({rows}, 256), "float32")
        two = T.alloc_shared(({rows}, 256), "float32")
        for i in T.Parallel(64):
            kept[i] = X[i, 0]
        T.copy(X[0:{rows}, :], one)
        for i, j in T.Parallel({rows}, 256):
            Y[i, j] = one[i, 255 - j]
        for i, j in T.Parallel({rows}, 256):
            if i < n:
                two[i, j] = X[i, j] + 1
        for i, j in T.Parallel({rows}, 256):
            Y[i, j] = two[i, 255 - j] + kept[i % 64]  # reads
"""
ROWS = {"cuda:sm_90a": 192, "cuda:sm_89": 64}


def kernel(folder: Path, target: str, body: str) -> Kernel:
    rows = ROWS[target]
    params = f"X: T.Tensor(({rows}, 256), 'float32'), n: T.int32, Y: T.Tensor(({rows}, 256), 'float32')"
    small = load_body(folder, body.format(rows=rows), params, target=target, threads=128)
    assert "union {" in small.source, "the tiles share memory"
    return small


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ROWS)
def test_what_an_earlier_tile_left_is_not_read(target: str, tmp_path: Path) -> None:
    small, rows = kernel(tmp_path, target, FORWARD), ROWS[target]
    x = np.arange(rows * 256, dtype=np.float32).reshape(rows, 256)
    np.testing.assert_array_equal(small(x, rows), x[:, ::-1] + 1 + x[np.arange(rows) % 64, :1])
    assert small.report is not None
    assert not small.report.warnings
    with pytest.raises(CheckError, match="of another tile that had this memory") as found:
        small(x, rows - 1)
    assert {finding.kind for finding in found.value.report.findings} == {"uninitialised shared read"}
    assert "# reads" in str(found.value)


OPERAND = """
        one = T.alloc_shared((128, 512), "float16")
        A_shared = T.alloc_shared((64, 512), "float16")
        B_shared = T.alloc_shared((512, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        T.copy(X, one)
        for i, j in T.Parallel(64, 64):
            Y[i, j] = one[63 - i, j]
        for i, j in T.Parallel(64, 512):
            if i < 40:
                A_shared[i, j] = X[i, j]
        for i, j in T.Parallel(512, 64):
            B_shared[i, j] = X[j, i]
        T.clear(acc)
        T.gemm(A_shared, B_shared, acc)  # multiplies
        for i, j in T.Parallel(64, 64):
            if i < 40:
                Y[i, j] = acc[i, j]
"""


def test_rows_of_an_operand_that_an_earlier_tile_left_are_a_warning(tmp_path: Path) -> None:
    params = 'X: T.Tensor((128, 512), "float16"), Y: T.Tensor((64, 64), "float32")'
    small = load_body(tmp_path, OPERAND, params, target="cuda:sm_90a", threads=128)
    assert "union {" in small.source
    small(np.ones((128, 512), np.float16))
    assert small.report is not None
    assert {warning.kind for warning in small.report.warnings} == {"uninitialised MMA operand"}
    assert "# multiplies" in str(small.report)
