"""What threads say to one another, as nvcc compiles it, on the PTX machine."""

from pathlib import Path

import numpy as np

from tests.host.kernels import load_body


def test_shuffles_and_reductions_of_lanes(tmp_path: Path) -> None:
    statements = """
        tx = T.get_thread_binding()
        x = X[bx * 64 + tx]
        y = T.shfl_xor(x, 5) - T.shfl_sync(x, tx % 7) + T.shfl_down(x, 4, 8)
        Y[bx * 64 + tx] = y * T.warp_reduce_max(x) + tx // -3 + tx % -3
    """
    params = 'X: T.Tensor((M,), "int32"), Y: T.Tensor((M,), "int32")'
    kernel = load_body(
        tmp_path, statements, params, grid="2", arguments="M", M=128, threads=64, device="ptx", check=False
    )
    x = np.random.default_rng(0).integers(-99, 100, (4, 32), dtype=np.int32)
    lane, tx = np.arange(32), np.arange(128).reshape(4, 32) % 64
    down = x[:, np.where(lane % 8 + 4 < 8, lane + 4, lane)]
    found = x[:, lane ^ 5] - np.take_along_axis(x, tx % 7, axis=1) + down
    expected = found * x.max(axis=1, keepdims=True) + tx // -3 + tx % -3
    np.testing.assert_array_equal(kernel(x.reshape(-1)), expected.reshape(-1))
