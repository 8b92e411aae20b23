"""How warps share a product, as tile compilers got it wrong before."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tests.host.pitfalls.inputs import integers
from tile2cu.core.errors import Tile2CuError

PRODUCT = """
    A_shared = T.alloc_shared((M, 32), "float16")
    B_shared = T.alloc_shared((32, N), "float16")
    C_local = T.alloc_fragment((M, N), "float32")
    T.clear(C_local)
    for k in T.Pipelined(3, num_stages=2):
        T.copy(A[0, k * 32], A_shared)
        T.copy(B[k * 32, 0], B_shared)
        T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.{policy})
    T.copy(C_local, C)
"""


def product(folder: Path, m: int, n: int, warps: int, policy: str, target: str):
    params = 'A: T.Tensor((M, 96), "float16"), B: T.Tensor((96, N), "float16"), C: T.Tensor((M, N), "float32")'
    statements = PRODUCT.format(policy=policy)
    return load_body(folder, statements, params, arguments="M, N", threads=32 * warps, target=target, M=m, N=n)


@pytest.mark.sweep(cases=3)
@pytest.mark.parametrize(
    ("m", "n", "warps", "policy", "target"),
    [
        (192, 104, 12, "FullCol", "cuda:sm_80"),  # the policy as far as it goes
        (48, 64, 8, "FullRow", "cuda:sm_80"),
        (96, 64, 4, "Square", "cuda:sm_90a"),  # rows that warpgroups do not share out
        (128, 192, 12, "FullRow", "cuda:sm_90a"),
        (64, 40, 4, "Square", "cuda:sm_90a"),  # columns that are no multiple of 16
        (64, 88, 4, "Square", "cuda:sm_90a"),
        (256, 64, 8, "FullRow", "cuda:sm_90a"),  # two warpgroups along m
        (128, 256, 16, "FullRow", "cuda:sm_90a"),
        (256, 16, 16, "Square", "cuda:sm_90a"),
        (64, 96, 8, "FullCol", "cuda:sm_90a"),
        (64, 384, 4, "Square", "cuda:sm_90a"),
    ],
)
def test_warps_cover_every_row_and_column(m: int, n: int, warps: int, policy: str, target: str, tmp_path: Path) -> None:
    a, b = integers(m, 96, dtype=np.float16), integers(96, n, dtype=np.float16)
    kernel = product(tmp_path, m, n, warps, policy, target)
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize(
    ("m", "n", "warps", "policy", "target"),
    [
        (16, 104, 12, "Square", "cuda:sm_80"),
        (288, 8, 17, "Square", "cuda:sm_80"),
        (336, 8, 20, "FullCol", "cuda:sm_80"),
        (16, 16, 7, "Square", "cuda:sm_80"),
        (64, 104, 12, "Square", "cuda:sm_90a"),
        (336, 16, 20, "FullCol", "cuda:sm_90a"),
    ],
)
def test_warps_that_cannot_cover_it_are_refused(
    m: int, n: int, warps: int, policy: str, target: str, tmp_path: Path
) -> None:
    with pytest.raises(Tile2CuError, match=f"{warps} warps cannot share a GEMM of {m} x {n}"):
        product(tmp_path, m, n, warps, policy, target)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("columns", [96, 112, 160, 176, 256])
def test_a_width_that_the_instruction_has_is_one_instruction(columns: int, tmp_path: Path) -> None:
    kernel = product(tmp_path, 64, columns, 4, "Square", "cuda:sm_90a")
    assert "tl::WgmmaAccumulator<" in kernel.source
    a, b = integers(64, 96, dtype=np.float16), integers(96, columns, dtype=np.float16)
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64))
