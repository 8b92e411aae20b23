"""The inputs of the kernels of this folder: small integers, whose sums are exact in any order."""

import numpy as np
import pytest

RNG = np.random.default_rng(0)
TARGETS = pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])


def integers(*shape: int, dtype: object = np.float32, low: int = -4) -> np.ndarray:
    return RNG.integers(low, 5, shape).astype(dtype)
