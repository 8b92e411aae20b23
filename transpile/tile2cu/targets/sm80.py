"""NVIDIA A100. https://docs.nvidia.com/cuda/parallel-thread-execution/#warp-level-matrix-shape"""

from tile2cu.core.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FLOATS_OF_8_BITS, INT4, INT8, INT32, TFLOAT32, UINT4
from tile2cu.targets.table import Mma, Target

MMA = (
    Mma(FLOAT16, FLOAT32, m=16, n=8, k=16),
    Mma(FLOAT16, FLOAT16, m=16, n=8, k=16),
    Mma(BFLOAT16, FLOAT32, m=16, n=8, k=16),
    Mma(FLOAT32, FLOAT32, m=16, n=8, k=8),  # operands are rounded to tf32
    Mma(TFLOAT32, FLOAT32, m=16, n=8, k=8),
    Mma(INT8, INT32, m=16, n=8, k=32),
    Mma(FLOAT64, FLOAT64, m=16, n=8, k=4),  # two m8n8k4
)
# PTX ISA, 'mma', .s4 and .u4: on sm_90 and later ptxas writes a long sequence of other instructions for one.
INT4_PRODUCTS = tuple(Mma(operand, INT32, m=16, n=8, k=64) for operand in (INT4, UINT4))
INT4_THROUGH_INT8 = tuple(Mma(operand, INT32, m=16, n=8, k=64, through=INT8) for operand in (INT4, UINT4))
# PTX ISA, 'mma.sp': from sm_80 on.
SPARSE = tuple(Mma(operand, FLOAT32, m=16, n=8, k=32, sparse=True) for operand in (FLOAT16, BFLOAT16))
SPARSE += (Mma(INT8, INT32, m=16, n=8, k=64, sparse=True),)
# Halves hold the values of 8-bit floating point exactly.
FP8_THROUGH_HALF = tuple(Mma(operand, FLOAT32, m=16, n=8, k=32, through=FLOAT16) for operand in FLOATS_OF_8_BITS)

# CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications": 163 KB per block.
SM80 = Target(
    name="cuda:sm_80",
    arch="sm_80",
    shared_limit=163 * 1024,
    warp_size=32,
    max_threads=1024,
    cp_async=True,
    mma=MMA + FP8_THROUGH_HALF + INT4_PRODUCTS + SPARSE,
    source="https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities",
)
