"""NVIDIA B200 and GB200: Hopper's TMA and barriers, with GEMMs on mma.sync. Its tensor memory is not used yet.

https://docs.nvidia.com/cuda/parallel-thread-execution/#warp-level-matrix-instructions-mma
"""

from msgspec.structs import replace

from tile2cu.targets.sm90a import SM90A

# CUDA C++ Programming Guide, "Compute Capabilities": 227 KB per block. wgmma is sm_90a's alone (PTX ISA,
# "wgmma.mma_async", Target ISA Notes).
SM100A = replace(SM90A, name="cuda:sm_100a", arch="sm_100a", capability=(10, 0), multiprocessors=148, wgmma=())
