"""Loads an example for the CPU engine, runs it on the cases' inputs (tools/inputs.py), and reads its report."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np

import tile2cu
from tests.host.example_calls import EXAMPLES, Array
from tile2cu_runtime import Kernel


def load(name: str, kernel: str | None = None, **bindings: object) -> Kernel:
    """The example with every check on."""
    options = {"statistics": True, "schedules": ("round-robin", "shuffle")}
    return tile2cu.load(EXAMPLES / name, kernel, device="cpu", check=True, options=options, **bindings)


def assert_clean(kernel: Kernel) -> None:
    """No findings, and no bank conflicts in MMA operand loads."""
    assert kernel.report is not None
    assert not kernel.report.findings
    products = [
        access for access in kernel.report.shared if "tl::gemm" in access.place.text and access.access == "read"
    ]
    assert all(access.worst_ways == 1 for access in products), products


def run(kernel: Kernel, inputs: Sequence[Array], dtypes: str | Sequence[str] = "float16", **sizes: int) -> list[Array]:
    """The outputs, given float64 inputs that are exact in these types (one for all, or one for each)."""
    names = [dtypes] * len(inputs) if isinstance(dtypes, str) else dtypes
    arrays = [x.astype(getattr(ml_dtypes, name, name)) for x, name in zip(inputs, names, strict=True)]
    outputs = kernel(*arrays, **sizes)
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


def halves(arrays: Sequence[Array], dtype: object = np.float16) -> list[Array]:
    """The arrays in float64, rounded to `dtype` first."""
    return [array.astype(dtype).astype(np.float64) for array in arrays]
