"""Loads of staged tiles: by buffers, whose ends the hardware checks, wherever an offset of 32 bits reaches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import Kernel
from tile2cu_runtime.amdgcn import CodeObject
from tile2cu_runtime.engine import build_engine
from tile2cu_runtime.hip import CODE_OBJECT

COPY = """
    S = T.alloc_shared((32, 64), "float16")
    for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
        T.copy(X[bx * 32, k * 64], S)
        T.copy(S, Y[bx * 32, k * 64])
"""


def load(folder: Path, x: str, *, device: str) -> Kernel:
    params = f'X: T.Tensor({x}, "float16"), Y: T.Tensor((M, K), "float16")'
    sizes = {"grid": "T.ceildiv(M, 32)", "arguments": "M, K"}
    return load_body(folder, COPY, params, target="hip:gfx942", device=device, **sizes)  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_ragged_edges(device: str, tmp_path: Path) -> None:
    """Rows and columns outside are zero and read nothing; rows that start anywhere take the other way."""
    kernel = load(tmp_path, "(M, K)", device=device)
    for m, k in ((33, 72), (64, 128), (1, 8), (5, 71)):
        x = np.random.default_rng(m).standard_normal((m, k)).astype(np.float16)
        np.testing.assert_array_equal(kernel(x), x)
        assert kernel.report is not None and not kernel.report.findings
        for cost in kernel.costs:
            assert (cost.executed("buffer_load_dwordx4") > 0) == (k % 8 == 0)


REACH = """
#include <tl/tl.h>
// Whether a tile of 32 x 64 halves, `row` and `col` elements into a tensor of 64 rows, is loaded by a buffer.
template <class Rows, class Cols> bool by_buffer(Rows rows, Cols cols, int64_t stride, int row, int col) {
  const auto view = tl::strided_tensor<tl::Aligned<16>>(static_cast<const tl::half*>(nullptr), tl::strides(stride, 1),
                                                         rows, cols);
  const auto place = view.tile(row, col);
  return tl::StagedBuffer<std::decay_t<decltype(view)>>::reaches(place, 32, 64);
}
int main() {
  // 32 rows and 64 elements more of 2 bytes, below 2 GiB and at it.
  bool right = by_buffer(64, 64, (1 << 25) - 8, 0, 0) && !by_buffer(64, 64, 1 << 25, 0, 0);
  // The buffer's end is behind the tensor's last row: the tile must not start before the first row or behind the last
  // one, nor may rows overlap.
  right &= by_buffer(tl::predicated(64), 64, 64, 0, 0) && by_buffer(tl::predicated(64), 64, 64, 64, 0);
  right &= !by_buffer(tl::predicated(64), 64, 64, -1, 0) && !by_buffer(tl::predicated(64), 64, 64, 65, 0);
  right &= !by_buffer(tl::predicated(64), 64, 8, 0, 0) && by_buffer(64, 64, 8, 0, 0);
  return right ? 0 : 1;
}
"""


def test_tiles_that_a_buffer_does_not_fit_are_addressed_one_by_one(gxx: str, headers: Path, tmp_path: Path) -> None:
    """The text has both ways; which one is asked at run time, where strides are known."""
    (tmp_path / "reach.cpp").write_text(REACH, encoding="utf-8")
    flags = ["-std=c++17", "-DTL_WARP_SIZE=64", f"-I{headers}"]
    engine = [str(build_engine()), f"-Wl,-rpath,{build_engine().parent}"]
    subprocess.run([gxx, *flags, "reach.cpp", *engine, "-o", "reach"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "reach"]).returncode == 0
    code = CodeObject.load(load(tmp_path, "(M, K)", device="sim").library.parent / CODE_OBJECT)
    assert {"buffer_load_dwordx4", "global_load_dwordx4"} <= code.listing.names()


SHIFTED = """
    S = T.alloc_shared((32, 64), "float16")
    for k in T.Pipelined(3, num_stages=2):
        T.copy(X[k * 32 - 16, 0], S)
        T.copy(S, Y[k * 32, 0])
"""


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_a_tile_that_starts_before_the_tensor(device: str, tmp_path: Path) -> None:
    """Its first rows are zero, as its last ones behind the tensor are."""
    params = 'X: T.Tensor((M, 64), "float16"), Y: T.Tensor((96, 64), "float16")'
    kernel = load_body(tmp_path, SHIFTED, params, target="hip:gfx942", device=device, grid="1", arguments="M")
    x = np.random.default_rng(0).standard_normal((40, 64)).astype(np.float16)
    expected = np.zeros((96, 64), np.float16)
    expected[16:56] = x
    np.testing.assert_array_equal(kernel(x), expected)
    assert kernel.report is not None and not kernel.report.findings
