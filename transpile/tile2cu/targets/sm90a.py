"""NVIDIA H100, H200 and GH200. TMA and wgmma are not used yet: kernels run on sm_80's instructions."""

from dataclasses import replace

from tile2cu.targets.sm80 import SM80

# CUDA C++ Programming Guide, "Compute Capabilities": 227 KB of shared memory a block.
SM90A = replace(SM80, name="cuda:sm_90a", arch="sm_90a", shared_limit=227 * 1024)
