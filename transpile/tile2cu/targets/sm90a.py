"""NVIDIA H100, H200 and GH200.

https://docs.nvidia.com/cuda/parallel-thread-execution/#asynchronous-warpgroup-level-matrix-shape
"""

from msgspec.structs import replace

from tile2cu.core.dtype import BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2, FLOAT16, FLOAT32, INT8, INT32, TFLOAT32, UINT8
from tile2cu.targets.sm80 import FP8_THROUGH_HALF, INT4_THROUGH_INT8, MMA, SM80
from tile2cu.targets.sm89 import SPARSE_FP8
from tile2cu.targets.table import Wgmma

WGMMA = (
    Wgmma(FLOAT16, FLOAT32, k=16),
    Wgmma(FLOAT16, FLOAT16, k=16),
    Wgmma(BFLOAT16, FLOAT32, k=16),
    Wgmma(FLOAT32, FLOAT32, k=8),  # as on mma.sync, read as tf32
    Wgmma(TFLOAT32, FLOAT32, k=8),
    Wgmma(FLOAT8_E4M3, FLOAT32, k=32),
    Wgmma(FLOAT8_E5M2, FLOAT32, k=32),
    Wgmma(INT8, INT32, k=32),
    Wgmma(UINT8, INT32, k=32),
)

# Of 8-bit floating point only wgmma has MMAs: ptxas makes mma.sync of 16-bit ones (headers/tl/cuda/float8.h).
# CUDA C++ Programming Guide, "Compute Capabilities": 227 KB of shared memory per block.
SM90A = replace(
    SM80,
    name="cuda:sm_90a",
    arch="sm_90a",
    shared_limit=227 * 1024,
    capability=(9, 0),
    multiprocessors=132,
    mma=MMA + FP8_THROUGH_HALF + INT4_THROUGH_INT8 + SPARSE_FP8,
    wgmma=WGMMA,
    tma=True,
)
