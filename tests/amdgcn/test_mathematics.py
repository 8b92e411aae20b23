"""The functions that need a device library elsewhere: here they are code of the header, within 2 ulp of NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.amdgcn.build import KERNELS, compile_hip
from tile2cu_runtime.amdgcn import simulate

Function = Callable[[np.ndarray], np.ndarray]
FUNCTIONS: tuple[Function, ...] = (
    np.exp, np.exp2, lambda x: 10**x, np.log, np.log2, np.log10, np.tanh, lambda x: 1 / (1 + np.exp(-x)), np.sin,
    np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.vectorize(math.erf),
    lambda x: x ** float(np.float32(1.7)), lambda x: np.arctan2(x, float(np.float32(0.3))),
    lambda x: np.fmod(x, float(np.float32(0.3))),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value")
def test_functions(headers: Path, tmp_path: Path) -> None:
    flags = ("-O3", "-DTL_HIP_STANDALONE", f"-I{headers}")
    code = compile_hip(KERNELS / "mathematics.hip", "gfx942", tmp_path, *flags)
    x = np.linspace(-3, 3, 64).astype(np.float32)
    x[20:] = abs(x[20:]) + np.float32(0.01)
    y, d = np.zeros((len(FUNCTIONS), 64), np.float32), np.zeros((2, 64))
    assert simulate(code, "_Z11mathematicsPfPKfPd", 1, 64, [y, x, d]).is_clean
    wide = x.astype(np.float64)
    for got, function in zip(y, FUNCTIONS, strict=True):
        np.testing.assert_allclose(got, function(wide).astype(np.float32), rtol=2.4e-7)
    np.testing.assert_allclose(d[0], np.exp(wide), rtol=5e-16)
    np.testing.assert_allclose(d[1], np.log(wide), rtol=1e-15)


def test_what_is_missing_is_an_error_at_the_call(headers: Path, tmp_path: Path) -> None:
    text = (
        (KERNELS / "mathematics.hip").read_text(encoding="utf-8").replace("tl::exp(double(a))", "tl::tanh(double(a))")
    )
    (tmp_path / "missing.hip").write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError, match="AMD targets have no tanh of double"):
        compile_hip(tmp_path / "missing.hip", "gfx942", tmp_path, "-DTL_HIP_STANDALONE", f"-I{headers}")
