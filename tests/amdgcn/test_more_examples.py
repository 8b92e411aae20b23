"""The examples whose inputs and references are tools/'s: executed as code, right, and nothing found."""

from __future__ import annotations

import numpy as np
import pytest

import inputs
from tests.amdgcn.chips import CHIPS, require_compiler
from tests.amdgcn.code import assert_fits
from tests.host.more_calls import MORE, RNG, Case
from tile2cu_runtime.hip import CODE_OBJECT

# Rows that a table names, sums of squares; test_products.py has bytes in matrix cores, and tests/host runs every
# case's text.
EACH_TIME = {"mla_decode", "rmsnorm_silu"}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if str(case) in EACH_TIME else pytest.mark.nightly) for case in MORE],
    ids=str,
)
@pytest.mark.parametrize("chip", CHIPS)
def test_example(chip: str, case: Case, request: pytest.FixtureRequest) -> None:
    require_compiler(chip, request)
    kernel = case.load(f"hip:{chip}", "sim")
    assert_fits(kernel.library.parent / CODE_OBJECT)
    case.check(kernel)
    assert kernel.report is not None and kernel.report.is_clean


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("name", ["gemm_streamk", "gemm_splitk_atomic"])
@pytest.mark.parametrize("chip", dict.fromkeys((*CHIPS, "gfx950")))
def test_product_is_added_to_what_c_holds(chip: str, name: str, request: pytest.FixtureRequest) -> None:
    """C is in and out, by atomics: five programs for six tiles, or three parts of K.

    The last part ends with tiles behind the tensors, which gfx950's loads past the registers do not bring.
    """
    require_compiler(chip, request)
    bindings = {"programs": 5} if name == "gemm_streamk" else {"splits": 3}
    case = Case(file="gemm_splitk.py", kernel=name, bindings=bindings | {"block_M": 64, "block_N": 64})
    kernel = case.load(f"hip:{chip}", "sim")
    a, b, c = inputs.small_integers(RNG, [(130, 200), (200, 72), (130, 72)])
    sums = c.astype(np.float32)
    kernel(a.astype(np.float16), b.astype(np.float16), sums)
    np.testing.assert_array_equal(sums, a @ b + c)
    assert kernel.report is not None and kernel.report.is_clean
