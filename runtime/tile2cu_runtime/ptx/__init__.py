"""Runs PTX that nvcc made, on NumPy arrays and without a GPU: what g++ cannot see of headers/tl/cuda is checked here.

    module = Module.load(Path("gemm.ptx"))
    module.launch(module.find("kernel"), (2, 2), (128,), [a, b, c, m, k, n], shared_bytes=49152)

The CPU engine runs an emitted text on its own primitives; a swapped operand in an asm statement of headers/tl/cuda is
invisible there, and is a wrong result here.

Has: what nvcc 13 makes of the emitted texts for sm_80: integers, floats, conversions, loads and stores, atomics,
shuffles and votes, ldmatrix, mma.sync but of 8-bit floats, cp.async, bar.sync 0. It checks bounds, alignment
and that warps are whole; copies land as late as they may, and what nobody wrote in shared memory is NaN.
Has not: wgmma, TMA, mbarriers, named barriers, 8-bit floats, textures, functions that are not inlined. No time, no
races. Transcendentals are correctly rounded, sums of an mma are rounded once.
"""

from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.run import Module

__all__ = ["Module", "PtxError"]
