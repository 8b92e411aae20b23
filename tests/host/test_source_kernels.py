"""T.CUDASourceCodeKernel: the user's own kernel is launched with the tensors, scalars and open sizes of the file's."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tile2cu.core.errors import Tile2CuError

SCALED = '''
import tilelang.language as T

SOURCE = """
extern "C" __global__ void __launch_bounds__(96) scaled(const float* A, float* B, float by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) B[i] = by * A[i];
}
"""

def make():
    N = T.dynamic("N")

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), by: T.float32):
        T.CUDASourceCodeKernel(T.ceildiv(N, 96), threads=96, source_code_or_path=SOURCE, entry_name="scaled")

    return main
'''


def written(folder: Path, text: str = SCALED) -> Path:
    path = folder / "scaled.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("target", ["cuda:sm_90a", "hip:gfx942"])
@pytest.mark.parametrize("size", [1, 96, 1000])
def test_the_users_kernel_runs(target: str, size: int, tmp_path: Path) -> None:
    path = written(tmp_path, SCALED.replace("96", "64") if target.startswith("hip") else SCALED)
    x = np.arange(size, dtype=np.float32)
    y = np.zeros_like(x)
    tile2cu.load(path, device="cpu", target=target, check=True)(x, y, 3.0)
    np.testing.assert_array_equal(y, 3 * x)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('entry_name="scaled"', 'entry_name="other"', "no kernel 'other': its kernels are `scaled`"),
        ("float by, int n", "int n", "`scaled` takes 3 arguments, and T.CUDASourceCodeKernel passes 4"),
        ("threads=96,", "threads=(32, 3),", "threads in 2 dimensions"),
        ("source_code_or_path=SOURCE", 'source_code_or_path="own.cu"', "the path of a file"),
    ],
)
def test_what_does_not_fit_is_rejected(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(Tile2CuError, match=message.replace("(", r"\(")):
        tile2cu.load(written(tmp_path, SCALED.replace(old, new)), device="cpu")
