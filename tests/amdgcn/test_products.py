"""Products of emitted HIP text, compiled by clang and run on the simulator: exact, no finding, no bank conflict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.example_calls import EXAMPLES, attention
from tests.host.products import Product


@pytest.mark.parametrize(
    ("target", "product", "instruction"),
    [
        ("gfx942", Product(shape=(64, 96, 80), threads=64), "v_mfma_f32_16x16x16_f16"),
        ("gfx942", Product(shape=(64, 96, 80), ta=True, tb=True, threads=64), "v_mfma_f32_16x16x16_f16"),
        ("gfx942", Product(dtype="bfloat16", in_registers=True, policy="FullRow"), "v_mfma_f32_16x16x16_bf16"),
        ("gfx942", Product(dtype="float32", shape=(32, 64, 32)), "v_mfma_f32_16x16x4_f32"),
        ("gfx942", Product(dtype="bfloat16", shape=(32, 128, 32), policy="FullRow"), "v_mfma_f32_16x16x16_bf16"),
        ("gfx942", Product(dtype="float64", accumulator="float64", shape=(32, 64, 32)), "v_mfma_f64_16x16x4_f64"),
        ("gfx942", Product(dtype="tfloat32", shape=(32, 64, 32)), "v_mfma_f32_16x16x8_xf32"),
        ("gfx942", Product(b_in_registers=True, in_registers=True, tb=True), "v_mfma_f32_16x16x16_f16"),
        ("gfx90a", Product(dtype="tfloat32", shape=(32, 64, 32)), "v_mfma_f32_16x16x4f32"),
        ("gfx90a", Product(dtype="float64", accumulator="float64", tb=True), "v_mfma_f64_16x16x4f64"),
        ("gfx90a", Product(dtype="int8", accumulator="int32"), "v_mfma_i32_16x16x16i8"),
        ("gfx90a", Product(dtype="bfloat16", tb=True), "v_mfma_f32_16x16x16bf16_1k"),
        ("gfx950", Product(shape=(64, 96, 96), threads=64), "v_mfma_f32_16x16x32_f16"),
        ("gfx950", Product(dtype="int8", accumulator="int32", tb=True), "v_mfma_i32_16x16x64_i8"),
        # Each chip has instructions for one of the two 8-bit formats at most; the other goes through halves.
        ("gfx942", Product(dtype="float8_e4m3fnuz"), "v_mfma_f32_16x16x32_fp8_fp8"),
        ("gfx942", Product(dtype="float8_e5m2fnuz", tb=True), "v_mfma_f32_16x16x32_bf8_bf8"),
        ("gfx942", Product(dtype="float8_e4m3", tb=True), "v_mfma_f32_16x16x16_f16"),
        ("gfx90a", Product(dtype="float8_e5m2fnuz", tb=True), "v_mfma_f32_16x16x16f16"),
        ("gfx950", Product(dtype="float8_e4m3", tb=True), "v_mfma_f32_16x16x32_fp8_fp8"),
        ("gfx950", Product(dtype="float8_e4m3fnuz", tb=True, shape=(64, 64, 80)), "v_mfma_f32_16x16x16_f16"),
    ],
    ids=str,
)
def test_product(
    target: str, product: Product, instruction: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The result is exact, and no MFMA runs but the one that was chosen."""
    if target == "gfx950":
        request.getfixturevalue("ziglang")
    kernel = product.check(tmp_path, f"hip:{target}", "sim")
    (cost,) = kernel.costs
    assert {each.name for each in cost.instructions if each.name.startswith("v_mfma")} == {instruction}


def test_attention_reads_16_bytes_a_lane_without_conflicts() -> None:
    """Also V, whose rows lie across K of their product: 128 columns are 16 lanes' chunks."""
    kernel = tile2cu.load(
        EXAMPLES / "attention.py",
        target="hip:gfx942",
        device="sim",
        check=True,
        options={"statistics": True},
        dim=128,
        is_causal=False,
        threads=256,
    )
    attention(1, 1, 128, 128, causal=False).check(kernel)
    (cost,) = kernel.costs
    assert cost.measured is not None and cost.measured.lds.cycles == cost.measured.lds.ideal
    # 8 waves in two turns of 64 keys: K's and V's tiles, and of Q each wave's 16 rows.
    assert cost.executed("ds_read_b128") == 8 * 2 * (2 * 64 + 16) * 128 * 2 // (64 * 16)
    assert cost.executed("ds_read_b64", "ds_read2") == 0


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
