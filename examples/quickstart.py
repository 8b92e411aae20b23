"""Transpiles a GEMM, builds its source for the CPU, runs it with every check on, and compares with NumPy."""

from pathlib import Path

import numpy as np
import tile2cu

EXAMPLES = Path(__file__).parent


def main() -> None:
    kernel = tile2cu.load(EXAMPLES / "gemm_relu.py", target="cuda:sm_80", device="cpu", check=True)

    # No size is a multiple of the tile.
    rng = np.random.default_rng(0)
    a = rng.standard_normal((150, 70)).astype(np.float16)
    b = rng.standard_normal((70, 200)).astype(np.float16)
    c = kernel(a, b)

    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
    error = np.max(np.abs(c - expected)) / np.max(np.abs(expected))
    assert error < 1e-3, error

    print(f"relu(A @ B), {a.shape} times {b.shape}, agrees with NumPy: relative error {error:.1e}")
    print("no race, no access out of bounds, no uninitialised read")
    print(f"the text that ran: {kernel.folder / kernel.manifest.text_file}")


if __name__ == "__main__":
    main()
