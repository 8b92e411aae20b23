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
    B_shared = T.alloc_shared({b}, {dtype!r})
    A_local = T.alloc_fragment({a}, {dtype!r})
    B_local = T.alloc_fragment({b}, {dtype!r})
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
    """A product of M x N x K elements; `in_registers` takes A from a fragment, `b_in_registers` B."""

    shape: tuple[int, int, int] = (64, 64, 64)
    dtype: str = "float16"
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
            accumulator=self.accumulator,
            operand="A_local" if self.in_registers else "A_shared",
            second="B_local" if self.b_in_registers else "B_shared",
            ta=self.ta,
            tb=self.tb,
            policy=self.policy,
        )
        stored = "float32" if self.dtype == "tfloat32" else self.dtype
        params = ", ".join(
            f"{name}: T.Tensor({shape}, {dtype!r})"
            for name, shape, dtype in (
                ("A", a_shape, stored),
                ("B", b_shape, stored),
                ("C", "(M, N)", self.accumulator),
            )
        )
        sizes = {"arguments": "M, N", "M": m, "N": n, "threads": self.threads}
        kernel = load_body(folder, statements, params, target=target, device=device, **sizes)  # type: ignore[arg-type]
        rng = np.random.default_rng(0)
        a, b = (rng.integers(-4, 5, shape).astype(_TYPES.get(stored, stored)) for shape in (a_shape, b_shape))
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        expected = (wide_a.T if self.ta else wide_a) @ (wide_b.T if self.tb else wide_b)
        np.testing.assert_array_equal(kernel(a, b).astype(np.float64), expected)
        return kernel
