"""Runs nvcc's PTX on NumPy arrays without a GPU: it checks headers/tl/cuda, which g++ does not compile.

    module = Module.load(Path("gemm.ptx"))
    module.launch(module.find("kernel"), (2, 2), (128,), [a, b, c, m, k, n], shared_bytes=49152)

The CPU engine runs an emitted source with its own primitives; a swapped operand in an asm statement of headers/tl/cuda
is invisible there, and a wrong result here.

Supported: the instructions that nvcc 13 generates for emitted sources: integers, floats, conversions, loads and stores,
atomics, shuffles and votes, ldmatrix and stmatrix, mma.sync, cp.async, named barriers; of sm_90a wgmma of all widths
and types with 32-bit accumulators, mbarriers, bulk copies of rows and tensor boxes (tensor_map.py), clusters. Checked:
bounds, alignment, complete warps and warpgroups. Copies complete as late as possible, and unwritten shared memory is
NaN. Reported: reads and writes of the operands of a copy or wgmma in flight; a missing wgmma.fence, fence.proxy.async
or fence.mbarrier_init; bytes that an mbarrier expects in vain; copies and wgmmas that are never waited for.
Unsupported: tcgen05, sparse wgmma, im2col maps, textures, functions that are not inlined. No timing, and no races
between threads. Transcendental functions are correctly rounded; MMA accumulation is rounded once.
"""

from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.run import Module

__all__ = ["Module", "PtxError"]
