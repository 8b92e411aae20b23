"""Kernels in CuTe's style: their launchers and nvcc's PTX, on the PTX machine, against NumPy and the style tl."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tile2cu
from tile2cu_runtime import DeviceError, Kernel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RNG = np.random.default_rng(21)

pytestmark = pytest.mark.needs("cutlass", "nvcc")


def load(name: str, style: str = "cute", **bindings: object) -> Kernel:
    return tile2cu.load(EXAMPLES / f"{name}.py", device="ptx", style=style, **bindings)


def integers(*shape: int) -> np.ndarray:
    """Small integers: their products and sums are exact, in whatever order they are added."""
    return RNG.integers(-4, 5, shape)


@pytest.mark.parametrize("sizes", [(136, 264, 72), (131, 77, 45), (1, 8, 1), (5, 3, 0)])
def test_gemm_relu(sizes: tuple[int, int, int]) -> None:
    """Rows that start at multiples of 16 bytes take one instance, others another; the launcher chooses."""
    m, n, k = sizes
    a, b = integers(m, k).astype(np.float16), integers(k, n).astype(np.float16)
    found = load("gemm_relu")(a, b)
    np.testing.assert_array_equal(found, np.maximum(a.astype(float) @ b.astype(float), 0).astype(np.float16))
    assert found.tobytes() == load("gemm_relu", "tl")(a, b).tobytes()


TRANSPOSED = {"dtype": "bfloat16", "out_dtype": "float32", "transpose_A": True, "transpose_B": True, "bias": True}


@pytest.mark.parametrize("sizes", [(136, 264, 72), (131, 77, 45)])
def test_gemm_of_transposed_operands_with_a_bias(sizes: tuple[int, int, int]) -> None:
    """Both operands through the other ldmatrix; the epilogue reads a tensor at the loop's own indices."""
    m, n, k = sizes
    a, b = (integers(*shape).astype(ml_dtypes.bfloat16) for shape in ((k, m), (n, k)))
    bias = integers(n).astype(np.float32)
    found = load("gemm", **TRANSPOSED)(a, b, bias)
    np.testing.assert_array_equal(found, a.astype(np.float32).T @ b.astype(np.float32).T + bias)
    assert found.tobytes() == load("gemm", "tl", **TRANSPOSED)(a, b, bias).tobytes()


def test_the_cpu_engine_does_not_take_it() -> None:
    with pytest.raises(DeviceError, match="includes cutlass, which g\\+\\+ cannot compile"):
        tile2cu.load(EXAMPLES / "gemm_relu.py", device="cpu", style="cute")
