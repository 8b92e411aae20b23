"""Conversions to and from both kinds of 8-bit floating point, by the chip's instructions where it has that kind."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body

CONVERSION = """
    for i in T.Parallel(512):
        Y[{line}, i] = T.cast(T.cast(X[i], {dtype!r}), "float32")
"""
FORMATS = {
    "float8_e4m3fn": (ml_dtypes.float8_e4m3fn, 448),
    "float8_e5m2": (ml_dtypes.float8_e5m2, 57344),
    "float8_e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, 240),
    "float8_e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, 57344),
}
# Whether a chip has instructions for two of the formats: FNUZ on gfx942, the OCP's on gfx950.
CHIPS = {"gfx90a": False, "gfx942": True, "gfx950": True}


# gfx90a, which has instructions for none, computes what the others compute for the formats that they lack.
@pytest.mark.parametrize("chip", [pytest.param("gfx90a", marks=pytest.mark.nightly), "gfx942", "gfx950"])
def test_conversions(chip: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Rounded to nearest even, saturated, NaN kept; zero has a sign where the format has one for it."""
    if chip == "gfx950":
        request.getfixturevalue("ziglang")
    statements = "".join(CONVERSION.format(line=line, dtype=dtype) for line, dtype in enumerate(FORMATS))
    params = 'X: T.Tensor((512,), "float32"), Y: T.Tensor((4, 512), "float32")'
    kernel = load_body(tmp_path, statements, params, target=f"hip:{chip}", device="sim")
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(512) * 2.0 ** rng.integers(-20, 18, 512)).astype(np.float32)
    x[:128] = np.arange(128) / 16 * 2.0 ** rng.integers(-16, 2, 128)  # denormals and ties
    x[128:138] = [0.0, -0.0, np.inf, -np.inf, np.nan, 460.0, 250.0, -70000.0, 57400.0, 1e30]
    for found, (numpy, highest) in zip(kernel(x), FORMATS.values(), strict=True):
        expected = np.clip(x, -highest, highest).astype(numpy).astype(np.float32)
        np.testing.assert_array_equal(found, expected)
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))
    (cost,) = kernel.costs
    # 512 elements of the two formats that the chip has, two by an instruction of a wave of 64.
    assert cost.executed("v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32") == 2 * 512 // 128 * CHIPS[chip]


AS_A_HALF = """
    for i in T.Parallel(512):
        Y[{line}, i] = T.cast(X{line}[i], "float16")
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("chip", ["gfx90a", "gfx942"])
def test_every_code_as_a_half(chip: str, tmp_path: Path) -> None:
    """Two at a time, by an instruction or as words: what products go through where the chip lacks the format."""
    statements = "".join(AS_A_HALF.format(line=line) for line in range(len(FORMATS)))
    inputs = "".join(f"X{line}: T.Tensor((512,), {dtype!r}), " for line, dtype in enumerate(FORMATS))
    params = f'{inputs}Y: T.Tensor(({len(FORMATS)}, 512), "float16")'
    kernel = load_body(tmp_path, statements, params, target=f"hip:{chip}", device="sim")
    both = np.concatenate([np.arange(256), np.arange(256)[::-1]]).astype(np.uint8)
    codes = [both.view(numpy) for numpy, _ in FORMATS.values()]
    for found, each in zip(kernel(*codes), codes, strict=True):
        expected = each.astype(np.float32).astype(np.float16)
        np.testing.assert_array_equal(found, expected)
        numbers = ~np.isnan(expected.astype(np.float32))
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])
