"""Several pipelined loops of a kernel have one producer: one after another, in another loop, in arms of a branch."""

from pathlib import Path
from textwrap import indent

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(5)
TILES = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
acc = T.alloc_fragment((64, 64), "float32")
"""
LOOP = """
for k in T.Pipelined({trips}, num_stages=2):
    T.copy({tensor}[row * 64, k * 64], A_shared)
    T.copy(B[0, k * 64], B_shared)
    T.gemm(A_shared, B_shared, acc, transpose_B=True)
"""
FIRST, SECOND = LOOP.format(trips="K // 64", tensor="A"), LOOP.format(trips="K // 64 - 1", tensor="D")
BETWEEN = "for i, j in T.Parallel(64, 64):\n    acc[i, j] *= 0.5\n"
TWO = f"T.clear(acc)\n{FIRST}{BETWEEN}{SECOND}T.copy(acc, C[row * 64, 0])\n"
ARMS = f"{indent(FIRST + BETWEEN + SECOND, '    ')}else:\n{indent(FIRST, '    ')}"
BODIES = {  # statements, blocks
    "one after another": ("row = bx\n" + TWO, 2),
    "in another loop": ("for row in T.serial(2):\n" + indent(TWO, "    "), 1),
    "in arms of a branch": (f"row = bx\nT.clear(acc)\nif bx > 0:\n{ARMS}T.copy(acc, C[row * 64, 0])\n", 2),
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("case", BODIES)
def test_loops_of_the_same_tiles_have_one_pipeline(case: str, tmp_path: Path) -> None:
    """The trip counts are odd, so that the second loop starts in another stage than the first."""
    body, blocks = BODIES[case]
    params = (
        'A: T.Tensor((128, K), "float16"), B: T.Tensor((64, K), "float16"), D: T.Tensor((128, K), "float16"), '
        'C: T.Tensor((128, 64), "float32")'
    )
    kernel = load_body(
        tmp_path, TILES + body, params, grid=str(blocks), arguments="K", target="cuda:sm_90a", threads=128, K=192
    )
    assert kernel.source.count("TmaPipeline<") == 1 and "stage.advance()" in kernel.source
    a, b, d = (RNG.integers(-3, 4, (rows, 192)).astype(np.float32) for rows in (128, 64, 128))
    first = a @ b.T
    both = first * 0.5 + d[:, :128] @ b[:, :128].T
    expected = np.concatenate((first[:64], both[64:])) if case == "in arms of a branch" else both
    np.testing.assert_array_equal(kernel(*(each.astype(np.float16) for each in (a, b, d))), expected)
