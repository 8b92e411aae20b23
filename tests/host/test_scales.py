"""T.float8_e8m0fnu: powers of two, as the scales of blocks are."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(8)
HARD = [0.0, -0.0, 1e-45, 2.0**-127, 2.0**-127 * 1.0001, -(2.0**-126), 1.0, -1.0000001, 3.0, 2.0**127, 3e38, np.inf]


@pytest.mark.sweep
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_conversions_take_the_magnitude_and_round_up(dtype: str, target: str, tmp_path: Path) -> None:
    statements = """
        S = T.alloc_fragment((1024,), "float8_e8m0fnu")
        for i in T.Parallel(1024):
            S[i] = T.cast(X[i], T.float8_e8m0fnu)
        T.copy(S, Y)
    """
    params = f'X: T.Tensor((1024,), "{dtype}"), Y: T.Tensor((1024,), "float8_e8m0fnu")'
    random = RNG.standard_normal(1000) * 2.0 ** RNG.integers(-126, 120, 1000)
    exact = np.array([*HARD, *random, *(2.0 ** np.arange(-6, 5)), np.nan], np.float32)
    x = exact.astype(ml_dtypes.bfloat16) if dtype == "bfloat16" else exact
    with np.errstate(divide="ignore"):
        exponents = np.clip(np.ceil(np.log2(np.abs(x.astype(np.float64)))), -127, 127)
    expected = np.where(np.isnan(exact), 255, np.nan_to_num(exponents) + 127).astype(np.uint8)
    found = load_body(tmp_path, statements, params, target=target)(x)
    np.testing.assert_array_equal(found.view(np.uint8), expected)


def test_every_scale_multiplies(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((256,), "float8_e8m0fnu")
        T.copy(scales, S)
        for i, j in T.Parallel(256, 4):
            Y[i, j] = X[i, j] * T.cast(S[i], "float32")
    """
    params = (
        'X: T.Tensor((256, 4), "float32"), scales: T.Tensor((256,), "float8_e8m0fnu"), Y: T.Tensor((256, 4), "float32")'
    )
    x = RNG.integers(1, 2, (256, 4)).astype(np.float32)
    scales = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu)
    found = load_body(tmp_path, statements, params)(x, scales)
    np.testing.assert_array_equal(found[:255], x[:255] * np.exp2(np.arange(255.0) - 127)[:, None].astype(np.float32))
    assert np.isnan(found[255]).all()
