"""NVIDIA L4, L40 and RTX 40: sm_80's instructions and products of 8-bit floating point."""

from dataclasses import replace

from tile2cu.core.dtype import FLOAT8_E4M3, FLOAT8_E5M2, FLOAT32
from tile2cu.targets.sm80 import MMA, SM80
from tile2cu.targets.table import Mma

# PTX ISA, 'mma', .e4m3 and .e5m2: from sm_89 on.
FP8 = (
    Mma(FLOAT8_E4M3, FLOAT32, m=16, n=8, k=32),
    Mma(FLOAT8_E5M2, FLOAT32, m=16, n=8, k=32),
)

# CUDA C++ Programming Guide, "Compute Capabilities": 99 KB of shared memory a block.
SM89 = replace(
    SM80,
    name="cuda:sm_89",
    arch="sm_89",
    shared_limit=99 * 1024,
    capability=(8, 9),
    multiprocessors=142,
    mma=MMA + FP8,
)
