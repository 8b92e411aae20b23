"""Every example for AMD: its code object keeps all it has in registers, and executed it is right and finds nothing."""

from __future__ import annotations

import pytest

import tile2cu
from tests.amdgcn.code import assert_well_compiled
from tests.host.example_calls import EXAMPLES, RAGGED, Example

# gfx90a has its own MFMAs; what has no product compiles alike.
CASES = [("gfx942", example) for example in RAGGED]
CASES += [
    ("gfx90a", example) for example in RAGGED if str(example) in ("vector_add", "gemm_relu bfloat16", "attention")
]


@pytest.mark.parametrize(("chip", "example"), CASES, ids=str)
def test_example(chip: str, example: Example) -> None:
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
