"""Functions on scalars and packets of every floating type, against NumPy in float64 and its special values."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from engine_kernels import Kernels, Written

# Each change: tests/host/test_small_numbers.py and test_rounding.py.
pytestmark = [pytest.mark.needs("g++"), pytest.mark.nightly]

COUNT = 256
TYPES = {
    "float": (np.float32, np.uint32, 3e-6),
    "float_scalar": (np.float32, np.uint32, 3e-6),
    "double": (np.float64, np.uint64, 1e-14),
    "half": (np.float16, np.uint16, 2**-10),
    "half_scalar": (np.float16, np.uint16, 2**-10),
    "bfloat16": (ml_dtypes.bfloat16, np.uint16, 2**-7),
}


@pytest.mark.parametrize("name", TYPES)
def test_functions(kernels: Callable[[str], Kernels], name: str) -> None:
    dtype, _, tolerance = TYPES[name]
    rng = np.random.default_rng(1)
    x = rng.uniform(-9, 9, COUNT).astype(dtype)
    u = rng.uniform(-1, 1, COUNT).astype(dtype)
    p = rng.uniform(0.25, 8, COUNT).astype(dtype)
    x[:4], u[:4], p[:4] = [0, 1.5, -1.5, 3], [0, 1, -1, 0.5], [1, 2, 0.5, 4]
    run = kernels("mathematics")(f"functions_{name}", x, u, p, Written(shape=(28, COUNT), dtype=dtype))
    wide, unit, positive = (a.astype(float) for a in (x, u, p))
    expected = [
        *(np.tan(unit), np.arcsin(unit), np.arccos(unit), np.arctan(wide), np.sinh(unit), np.cosh(unit)),
        *(10**unit, np.log10(positive), np.arctan2(unit, positive), np.fmod(wide, positive)),
        *(np.copysign(positive, unit), unit * positive + wide, np.sign(wide), np.clip(wide, -1.5, 2)),
        *(positive**unit, np.exp(unit), 10**unit, np.log(positive), np.log2(positive), np.log10(positive)),
        *(np.sin(unit), np.cos(unit), np.tan(unit), positive**unit, wide / positive, 1 / positive, np.tanh(unit)),
        wide / positive,
    ]
    allowed = np.full((len(expected), 1), tolerance)
    allowed[26] = max(tolerance, 2**-10)  # a GPU's tanh in one instruction
    error = abs(run.written[0].astype(float) - expected)
    assert (error <= allowed * (abs(np.array(expected)) + 1 / 3)).all()


@pytest.mark.parametrize("name", TYPES)
def test_special_values_and_bits(kernels: Callable[[str], Kernels], name: str) -> None:
    dtype, bits, _ = TYPES[name]
    x = np.random.default_rng(2).standard_normal(COUNT).astype(dtype)
    x[:6] = [np.nan, np.inf, -np.inf, 0.0, -0.0, -np.nan]
    run = kernels("mathematics")(
        f"special_{name}",
        x,
        Written(shape=(COUNT,), dtype=np.int32),
        Written(shape=(COUNT,), dtype=dtype),
        Written(shape=(2, COUNT), dtype=bits),
    )
    wide = x.astype(float)
    np.testing.assert_array_equal(run.written[0], np.isnan(wide) + 2 * np.isinf(wide) + 4 * np.isfinite(wide))
    np.testing.assert_array_equal(run.written[1].astype(float), np.sign(wide))
    np.testing.assert_array_equal(run.written[2], [x.view(bits), ~x.view(bits)])


def test_integers(kernels: Callable[[str], Kernels]) -> None:
    rng = np.random.default_rng(3)
    x, e = rng.integers(-6, 7, COUNT).astype(np.int32), rng.integers(0, 12, COUNT).astype(np.int32)
    x[:5], e[:5] = [1, -1, -1, 3, 0], [-2, -3, -4, -1, 0]
    run = kernels("mathematics")("integers", x, e, Written(shape=(5, COUNT), dtype=np.int32))
    powers = [
        int(float(base) ** int(k)) if base else int(k == 0) for base, k in zip(x.tolist(), e.tolist(), strict=True)
    ]
    expected = [powers, np.clip(x, -2, 5), np.sign(x), x * e + 7, np.ones(COUNT)]
    np.testing.assert_array_equal(run.written[0], expected)


FLOAT8 = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 448.0),
    "e5m2": (ml_dtypes.float8_e5m2, 57344.0),
    "e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, 240.0),
    "e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, 57344.0),
}


@pytest.mark.parametrize("name", FLOAT8)
def test_conversions_to_float8_round_to_even_and_saturate(kernels: Callable[[str], Kernels], name: str) -> None:
    dtype, highest = FLOAT8[name]
    rng = np.random.default_rng(4)
    x = (rng.standard_normal(COUNT) * 2.0 ** rng.integers(-20, 18, COUNT)).astype(np.float32)
    x[:64] = (
        np.arange(64, dtype=np.float32) / 16 * 2.0 ** (-9 if name.startswith("e4m3") else -16)
    )  # denormals and ties
    x[64:96] = np.arange(32, dtype=np.float32) + 32.5
    x[96:102] = [0.0, -0.0, np.inf, -np.inf, highest * 1.03, -highest * 1.2]
    run = kernels("mathematics")(
        name, x, Written(shape=(3, COUNT), dtype=dtype), Written(shape=(2, COUNT), dtype=np.float32),
        Written(shape=(COUNT,), dtype=np.float16),
    )  # fmt: skip
    clipped = np.clip(x, -highest, highest).astype(dtype)
    np.testing.assert_array_equal(run.written[0][:2].view(np.uint8), np.stack([clipped.view(np.uint8)] * 2))
    wide = clipped.astype(np.float32)
    np.testing.assert_array_equal(run.written[1], [wide, np.maximum(wide, 0) + 2 * wide])
    np.testing.assert_array_equal(run.written[2], wide.astype(np.float16))
    with np.errstate(over="ignore"):
        arithmetic = np.minimum(wide.astype(float) ** 2 + np.exp(wide.astype(float)), highest)
    np.testing.assert_allclose(run.written[0][2].astype(float), arithmetic, rtol=0.13, atol=2.0**-9)


@pytest.mark.parametrize("name", FLOAT8)
def test_every_float8(kernels: Callable[[str], Kernels], name: str) -> None:
    written = Written(shape=(256,), dtype=np.float32), Written(shape=(128,), dtype=np.uint32)
    run = kernels("mathematics")(f"all_{name}", *written)
    wanted = np.arange(256, dtype=np.uint8).view(FLOAT8[name][0]).astype(np.float32)
    np.testing.assert_array_equal(run.written[0], wanted)
    halves = run.written[1].view(np.float16)
    if name == "e4m3":  # pairs of the elements 0 and 2, and 1 and 3, of a register
        halves = halves.reshape(64, 2, 2).swapaxes(1, 2).reshape(256)
    np.testing.assert_array_equal(halves, wanted.astype(np.float16))
    np.testing.assert_array_equal(np.signbit(halves)[wanted == 0], np.signbit(wanted)[wanted == 0])
