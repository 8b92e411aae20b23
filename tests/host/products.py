"""Products C = A @ B of one tile, for tests on the CPU engine and on AMD's simulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from tests.host.kernels import load_body
from tile2cu_runtime import Kernel

_TYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
_STATEMENTS = """
    A_shared = T.alloc_shared({a}, {dtype!r})
    B_shared = T.alloc_shared({b}, {dtype_b!r})
    A_local = T.alloc_fragment({a}, {dtype!r})
    B_local = T.alloc_fragment({b}, {dtype_b!r})
    C_local = T.alloc_fragment((M, N), {accumulator!r})
    T.copy(A, A_shared)
    T.copy(B, B_shared)
    T.copy(A, A_local)
    T.copy(B, B_local)
    T.clear(C_local)
    T.gemm({operand}, {second}, C_local, transpose_A={ta}, transpose_B={tb}, policy=T.GemmWarpPolicy.{policy})
    T.copy(C_local, C)
"""


@dataclass(frozen=True, kw_only=True)
class Product:
    """A GEMM of M x N x K; `in_registers` takes A from a fragment, `b_in_registers` B.

    `dtype_b` is B's type if it differs from A's.
    """

    shape: tuple[int, int, int] = (64, 64, 64)
    dtype: str = "float16"
    dtype_b: str = ""
    accumulator: str = "float32"
    ta: bool = False
    tb: bool = False
    policy: str = "Square"
    threads: int = 128
    in_registers: bool = False
    b_in_registers: bool = False

    def check(self, folder: Path, target: str, device: str) -> Kernel:
        """Runs it on small integers, whose result is exact, and gives the kernel."""
        m, n, k = self.shape
        a_shape, b_shape = ((k, m) if self.ta else (m, k)), ((n, k) if self.tb else (k, n))
        statements = _STATEMENTS.format(
            a=a_shape,
            b=b_shape,
            dtype=self.dtype,
            dtype_b=self.dtype_b or self.dtype,
            accumulator=self.accumulator,
            operand="A_local" if self.in_registers else "A_shared",
            second="B_local" if self.b_in_registers else "B_shared",
            ta=self.ta,
            tb=self.tb,
            policy=self.policy,
        )
        stored, stored_b = (
            "float32" if each == "tfloat32" else each for each in (self.dtype, self.dtype_b or self.dtype)
        )
        params = ", ".join(
            f"{name}: T.Tensor({shape}, {dtype!r})"
            for name, shape, dtype in (
                ("A", a_shape, stored),
                ("B", b_shape, stored_b),
                ("C", "(M, N)", self.accumulator),
            )
        )
        sizes = {"arguments": "M, N", "M": m, "N": n, "threads": self.threads}
        kernel = load_body(folder, statements, params, target=target, device=device, **sizes)  # type: ignore[arg-type]
        rng = np.random.default_rng(0)
        operands = (a_shape, stored), (b_shape, stored_b)
        a, b = (rng.integers(-4, 5, shape).astype(_TYPES.get(dtype, dtype)) for shape, dtype in operands)
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        expected = (wide_a.T if self.ta else wide_a) @ (wide_b.T if self.tb else wide_b)
        np.testing.assert_array_equal(kernel(a, b).astype(np.float64), expected)
        return kernel


# (target, GEMM, its MFMA): run on the CPU engine and, as code objects, on the AMD simulator.
_F16, _BF16, _F8 = "v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x32"
_WIDE_F8 = "v_mfma_f32_16x16x128_f8f6f4"
MFMA_PRODUCTS = (
    ("gfx942", Product(shape=(64, 96, 80), threads=64), _F16),
    ("gfx942", Product(shape=(64, 96, 80), ta=True, tb=True, threads=64), _F16),
    ("gfx942", Product(shape=(64, 96, 80), ta=True, policy="FullCol"), _F16),
    ("gfx942", Product(shape=(128, 128, 64), ta=True), _F16),
    ("gfx942", Product(shape=(64, 96, 128), ta=True, policy="FullRow"), _F16),
    ("gfx942", Product(dtype="bfloat16", shape=(64, 128, 64), ta=True, tb=True), _BF16),
    ("gfx90a", Product(shape=(64, 128, 64), in_registers=True, policy="FullRow"), "v_mfma_f32_16x16x16f16"),
    ("gfx942", Product(in_registers=True, policy="FullRow"), _F16),
    ("gfx942", Product(in_registers=True, policy="FullRow", shape=(64, 128, 64)), _F16),
    ("gfx942", Product(in_registers=True, tb=True, shape=(64, 128, 64)), _F16),
    ("gfx942", Product(b_in_registers=True, in_registers=True, tb=True), _F16),
    ("gfx942", Product(dtype="bfloat16", ta=True, tb=True, policy="FullRow"), _BF16),
    ("gfx942", Product(dtype="bfloat16", in_registers=True, policy="FullRow"), _BF16),
    ("gfx942", Product(dtype="bfloat16", shape=(32, 128, 32), policy="FullRow"), _BF16),
    ("gfx942", Product(dtype="float32", shape=(32, 64, 32)), "v_mfma_f32_16x16x4_f32"),
    ("gfx942", Product(dtype="float64", accumulator="float64", shape=(32, 64, 32)), "v_mfma_f64_16x16x4_f64"),
    ("gfx942", Product(dtype="tfloat32", shape=(32, 64, 32)), "v_mfma_f32_16x16x8_xf32"),
    ("gfx942", Product(dtype="tfloat32", tb=True), "v_mfma_f32_16x16x8_xf32"),
    ("gfx942", Product(dtype="int8", accumulator="int32"), "v_mfma_i32_16x16x32_i8"),
    ("gfx90a", Product(dtype="tfloat32", shape=(32, 64, 32)), "v_mfma_f32_16x16x4f32"),
    ("gfx90a", Product(dtype="float64", accumulator="float64", tb=True), "v_mfma_f64_16x16x4f64"),
    ("gfx90a", Product(dtype="int8", accumulator="int32"), "v_mfma_i32_16x16x16i8"),
    ("gfx90a", Product(dtype="bfloat16", tb=True), "v_mfma_f32_16x16x16bf16_1k"),
    ("gfx950", Product(shape=(64, 96, 96), threads=64), "v_mfma_f32_16x16x32_f16"),
    ("gfx950", Product(shape=(64, 96, 48), ta=True, threads=64), _F16),
    ("gfx950", Product(dtype="bfloat16", in_registers=True, policy="FullRow"), "v_mfma_f32_16x16x32_bf16"),
    ("gfx950", Product(dtype="int8", accumulator="int32", tb=True), "v_mfma_i32_16x16x64_i8"),
    # Each target has instructions for at most one of the two kinds of 8-bit formats; the others are converted to half.
    ("gfx942", Product(dtype="float8_e4m3fnuz"), f"{_F8}_fp8_fp8"),
    ("gfx942", Product(dtype="float8_e5m2fnuz", tb=True), f"{_F8}_bf8_bf8"),
    ("gfx942", Product(dtype="float8_e4m3", tb=True), _F16),
    ("gfx90a", Product(dtype="float8_e5m2fnuz", tb=True), "v_mfma_f32_16x16x16f16"),
    ("gfx950", Product(dtype="float8_e4m3", tb=True), f"{_F8}_fp8_fp8"),
    ("gfx950", Product(dtype="float8_e4m3", tb=True, shape=(64, 64, 256)), _WIDE_F8),
    ("gfx950", Product(dtype="float8_e5m2", shape=(32, 64, 128)), _WIDE_F8),
    ("gfx950", Product(dtype="float8_e4m3fnuz", tb=True, shape=(64, 64, 80)), _F16),
    # B's format, the instruction's first operand, is first in its name.
    ("gfx942", Product(dtype="float8_e4m3fnuz", dtype_b="float8_e5m2fnuz", tb=True), f"{_F8}_bf8_fp8"),
    ("gfx942", Product(dtype="float8_e5m2fnuz", dtype_b="float8_e4m3fnuz", ta=True), f"{_F8}_fp8_bf8"),
    ("gfx942", Product(dtype="float8_e4m3fnuz", dtype_b="float8_e4m3", tb=True), _F16),
    ("gfx950", Product(dtype="float8_e5m2", dtype_b="float8_e4m3", tb=True), f"{_F8}_fp8_bf8"),
    ("gfx950", Product(dtype="float8_e4m3", dtype_b="float8_e5m2", tb=True, shape=(32, 64, 128)), _WIDE_F8),
)
