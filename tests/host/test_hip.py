"""The HIP text of the examples on the CPU engine, in waves of 64, against float64, ragged sizes included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.products import Product
from tile2cu_runtime import Kernel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name: str, target: str = "hip:gfx942", **bindings: object) -> Kernel:
    options = {"schedules": ("round-robin", "shuffle")}
    return tile2cu.load(EXAMPLES / name, target=target, device="cpu", check=True, options=options, **bindings)


@pytest.mark.parametrize("n", [1, 1023, 4099])
def test_vector_add(n: int) -> None:
    a, b = (np.random.default_rng(seed).standard_normal(n).astype(np.float32) for seed in (n, n + 1))
    np.testing.assert_array_equal(load("vector_add.py")(a, b), a + b)


@pytest.mark.parametrize(("rows", "columns", "threads"), [(7, 1000, 128), (2, 4096, 256), (1, 64, 64)])
def test_row_softmax(rows: int, columns: int, threads: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    y = load("row_softmax.py", N=columns, block_M=1, threads=threads)(x)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize(
    "product",
    [
        Product(shape=(64, 96, 80), threads=64),
        Product(shape=(64, 96, 80), ta=True, policy="FullCol"),
        Product(dtype="bfloat16", ta=True, tb=True, policy="FullRow"),
        Product(in_registers=True, policy="FullRow"),
        Product(in_registers=True, tb=True, shape=(64, 128, 64)),
        Product(dtype="int8", accumulator="int32"),
        Product(dtype="float64", accumulator="float64"),
    ],
    ids=str,
)
def test_product(product: Product, tmp_path: Path) -> None:
    kernel = product.check(tmp_path, "hip:gfx942", "cpu")
    assert "tl::MfmaAccumulator<" in kernel.source


def test_product_of_8_bit_floats(tmp_path: Path) -> None:
    Product(dtype="float8_e4m3", tb=True).check(tmp_path, "hip:gfx950", "cpu")


@pytest.mark.parametrize("stages", [2, 3])
def test_pipelined_gemm(stages: int) -> None:
    kernel = load("gemm_relu.py", block_M=64, block_N=64, num_stages=stages)
    assert kernel.source.count("tl::register_pipeline<num_slots>") == 1
    rng = np.random.default_rng(stages)
    for m, n, k in ((64, 64, 0), (100, 72, 40), (5, 3, 7), (64, 64, 200)):
        a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
        expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
        np.testing.assert_array_equal(kernel(a, b).astype(np.float64), expected)
