"""Runs PTX that nvcc made, on NumPy arrays and without a GPU: what g++ cannot see of headers/tl/cuda is checked here.

    module = Module.load(Path("gemm.ptx"))
    module.launch(module.find("kernel"), (2, 2), (128,), [a, b, c, m, k, n], shared_bytes=49152)

The CPU engine runs an emitted text on its own primitives; a swapped operand in an asm statement of headers/tl/cuda is
invisible there, and is a wrong result here.

Has: what nvcc 13 makes of the emitted texts: integers, floats, conversions, loads and stores, atomics, shuffles and
votes, ldmatrix and stmatrix, mma.sync, cp.async, numbered barriers; of sm_90a wgmma of all widths and types with sums
in 32 bits, mbarriers, bulk copies of rows and of boxes of tensors (tensor_map.py), clusters. It checks bounds,
alignment, that warps and warpgroups come whole; copies land as late as they may, and what nobody wrote in shared
memory is NaN. Reported: what is read, or written, while a copy or a product on it is in flight; a missing wgmma.fence,
fence.proxy.async or fence.mbarrier_init; bytes that a barrier waits for in vain; copies and products that nobody waits
for.
Has not: tcgen05, sparse wgmma, im2col maps, textures, functions that are not inlined. No time,
no races between threads. Transcendentals are correctly rounded, sums of a product are rounded once.
"""

from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.run import Module

__all__ = ["Module", "PtxError"]
