"""Products of emitted HIP text, compiled by clang and run on the simulator: exact, no finding, no bank conflict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.products import Product

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    ("target", "product"),
    [
        ("gfx942", Product(shape=(64, 96, 80), threads=64)),
        ("gfx942", Product(shape=(64, 96, 80), ta=True, tb=True, threads=64)),
        ("gfx942", Product(dtype="bfloat16", in_registers=True, policy="FullRow")),
        ("gfx942", Product(dtype="float32", shape=(32, 64, 32))),
        ("gfx942", Product(dtype="float64", accumulator="float64", shape=(32, 64, 32))),
        ("gfx90a", Product(dtype="int8", accumulator="int32")),
        ("gfx90a", Product(dtype="bfloat16", tb=True)),
    ],
    ids=str,
)
def test_product(target: str, product: Product, tmp_path: Path) -> None:
    product.check(tmp_path, f"hip:{target}", "sim")


def test_pipelined_gemm_of_ragged_sizes() -> None:
    """Tiles go through registers to two slots of shared memory; no access to them meets a bank conflict."""
    kernel = tile2cu.load(
        EXAMPLES / "gemm_relu.py",
        target="hip:gfx942",
        device="sim",
        check=True,
        options={"statistics": True},
        threads=256,
    )
    rng = np.random.default_rng(0)
    for m, n, k in ((128, 128, 96), (200, 136, 72), (5, 3, 7)):
        a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
        expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
        np.testing.assert_array_equal(kernel(a, b).astype(np.float64), expected)
        (cost,) = kernel.costs
        assert cost.measured is not None
        if k % 8 == 0 and n % 8 == 0:  # else elements are stored one by one
            assert cost.measured.lds.cycles == cost.measured.lds.ideal
        assert cost.count("scratch") == 0
