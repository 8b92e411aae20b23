"""NVIDIA L4, L40 and RTX 40: sm_80's instructions and MMAs of 8-bit floating point."""

from msgspec.structs import replace

from tile2cu.core.dtype import FLOAT32, OCP_FLOATS
from tile2cu.targets.sm80 import FP8_THROUGH_HALF, INT4_PRODUCTS, MMA, SM80, SPARSE
from tile2cu.targets.table import Mma

# PTX ISA, 'mma' and 'mma.sp', .e4m3 and .e5m2: from sm_89 on.
FP8 = tuple(Mma(operand, FLOAT32, m=16, n=8, k=32) for operand in OCP_FLOATS)
SPARSE_FP8 = SPARSE + tuple(Mma(operand, FLOAT32, m=16, n=8, k=64, sparse=True) for operand in OCP_FLOATS)
FP8 += tuple(row for row in FP8_THROUGH_HALF if row.operand not in OCP_FLOATS)

# CUDA C++ Programming Guide, "Compute Capabilities": 99 KB of shared memory per block.
SM89 = replace(
    SM80,
    name="cuda:sm_89",
    arch="sm_89",
    shared_limit=99 * 1024,
    capability=(8, 9),
    multiprocessors=142,
    mma=MMA + FP8 + INT4_PRODUCTS + SPARSE_FP8,
)
