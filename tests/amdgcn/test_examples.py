"""Every example for AMD: its code object keeps all it has in registers, and executed it is right and finds nothing."""

from __future__ import annotations

import pytest

import tile2cu
from tests.amdgcn.chips import CHIPS, require_compiler
from tests.amdgcn.code import assert_well_compiled
from tests.host.example_calls import EXAMPLES, RAGGED, Example

# gfx90a has its own MFMAs; what has no product compiles alike.
ON_GFX90A = ("vector_add", "gemm_relu bfloat16", "attention")
# A product, two that share a loop, an older chip's; test_run.py has a reduction. tests/host runs every example's text.
EACH_TIME = {
    ("gfx942", "gemm_relu"), ("gfx942", "attention is_causal"), ("gfx90a", "gemm_relu bfloat16"),
}  # fmt: skip
CASES = [(chip, example) for chip in CHIPS for example in RAGGED]
if "gfx90a" not in CHIPS:
    CASES += [("gfx90a", example) for example in RAGGED if str(example) in ON_GFX90A]


@pytest.mark.parametrize(
    ("chip", "example"),
    [pytest.param(*case, marks=() if (case[0], str(case[1])) in EACH_TIME else pytest.mark.nightly) for case in CASES],
    ids=str,
)
def test_example(chip: str, example: Example, request: pytest.FixtureRequest) -> None:
    require_compiler(chip, request)
    kernel = tile2cu.load(
        EXAMPLES / example.file,
        example.kernel,
        target=f"hip:{chip}",
        device="sim",
        check=True,
        options={},
        **example.bindings,
    )
    assert_well_compiled(kernel)
    for call in example.calls:
        call.check(kernel)
        assert kernel.report is not None and kernel.report.is_clean
        (cost,) = kernel.costs
        assert (cost.count("mfma") > 0) == ("tl::gemm(" in kernel.source)
