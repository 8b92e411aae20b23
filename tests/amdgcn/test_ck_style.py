"""The style ck, executed: clang compiles it against ck_tile's headers, and the simulator checks every access.

A build takes some 10 to 40 s of a core; all but a few run nightly.
"""

from __future__ import annotations

from functools import partial

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
    target, path = f"hip:{chip}", EXAMPLES / example.file
    loaded = partial(
        tile2cu.load, path, example.kernel, target=target, device="sim", style=style, check=True, options={}
    )
    return loaded(**example.bindings)


@pytest.mark.parametrize("example", CASES)
def test_example(example: Example) -> None:
    kernel = load(example, "ck")
    assert "#include <tl/ck.h>" in kernel.source
    assert_well_compiled(kernel)
    for call in example.calls:
        call.check(kernel)
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
