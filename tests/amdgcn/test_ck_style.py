"""The style ck, executed: clang compiles it against ck_tile's headers, and the simulator checks every access.

A build takes some 10 to 40 s of a core; all but a few run nightly.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.amdgcn.code import assert_well_compiled
from tests.host.example_calls import EXAMPLES, RAGGED, Example

pytestmark = pytest.mark.needs("ck")

EACH_TIME = ("vector_add", "gemm_relu")
UNSUPPORTED = ("gemv",)
CASES = [
    pytest.param(example, marks=() if str(example) in EACH_TIME else pytest.mark.nightly, id=f"{number} {example}")
    for number, example in enumerate(RAGGED)
    if str(example) not in UNSUPPORTED
]


def load(example: Example, style: str, chip: str = "gfx942") -> tile2cu.Kernel:
    path, target = EXAMPLES / example.file, f"hip:{chip}"
    loaded = partial(tile2cu.load, path, example.kernel, target=target, device="sim", style=style)
    return loaded(check=True, options={"statistics": True}, **example.bindings)


@pytest.mark.parametrize("example", CASES)
def test_example(example: Example) -> None:
    kernel = load(example, "ck")
    assert "#include <tl/ck.h>" in kernel.source
    assert_well_compiled(kernel)
    for call in example.calls:
        call.check(kernel)
        assert kernel.report is not None and kernel.report.is_clean


SCALED_ROWS = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scaled_rows(M, block_M=16, N=64):
    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"), S: T.Tensor((M,), "float32"), C: T.Tensor((M, N), "float32"),
        total: T.Tensor((N,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            scales = T.alloc_shared((block_M,), "float32")
            rows = T.alloc_fragment((block_M, N), "float32")
            sums = T.alloc_fragment((N,), "float32")
            T.copy(S[bx * block_M], scales)
            T.copy(A[bx * block_M, 0], rows)
            for i, j in T.Parallel(block_M, N):
                rows[i, j] = rows[i, j] * scales[i]
            T.copy(rows, C[bx * block_M, 0])
            T.reduce_sum(rows, sums, dim=0)
            for j in T.Parallel(N):
                T.atomic_add(total[j], sums[j])

    return main
"""


@pytest.mark.nightly
def test_fewer_elements_than_threads(tmp_path: Path) -> None:
    """One of the threads that hold an element stores it, or adds it; sums of columns are of warps, too."""
    (tmp_path / "scaled_rows.py").write_text(SCALED_ROWS, encoding="utf-8")
    kernel = tile2cu.load(
        tmp_path / "scaled_rows.py", target="hip:gfx942", device="sim", style="ck", check=True, options={}
    )
    generator = np.random.default_rng(5)
    a = generator.integers(-9, 10, (37, 64)).astype(np.float32)
    s = generator.integers(-9, 10, 37).astype(np.float32)
    c, total = np.zeros_like(a), np.zeros(64, np.float32)
    kernel(a, s, c, total)
    np.testing.assert_array_equal(c, a * s[:, None])
    np.testing.assert_array_equal(total, c.sum(0))
    assert kernel.report is not None and kernel.report.is_clean


@pytest.mark.nightly
def test_gfx90a() -> None:
    example = next(each for each in RAGGED if str(each) == "gemm_relu")
    kernel = load(example, "ck", "gfx90a")
    for call in example.calls:
        call.check(kernel)
        assert kernel.report is not None and kernel.report.is_clean


@pytest.mark.parametrize(("m", "n", "k"), [(256, 256, 128), (77, 45, 51)])
def test_gemm_has_the_bytes_and_the_lds_clocks_of_the_style_tl(m: int, n: int, k: int) -> None:
    """Small integers have exact sums. Rows that are whole vectors take as many LDS and matrix clocks."""
    example = next(each for each in RAGGED if str(each) == "gemm_relu")
    generator = np.random.default_rng(3)
    a = generator.integers(-4, 5, (m, k)).astype(np.float16)
    b = generator.integers(-4, 5, (k, n)).astype(np.float16)
    found = {}
    for style in ("tl", "ck"):
        kernel = load(example, style)
        found[style] = (np.asarray(kernel(a, b)).tobytes(), kernel.costs[0])
    assert found["tl"][0] == found["ck"][0]
    ours, theirs = found["ck"][1], found["tl"][1]
    assert ours.count("mfma") == theirs.count("mfma")
    if k % 8 == 0:
        assert ours.measured is not None and theirs.measured is not None
        assert ours.measured.lds.cycles == ours.measured.lds.ideal <= theirs.measured.lds.cycles
