"""NVIDIA L4, L40 and RTX 40. Its fp8 instructions are not used yet; the rest is sm_80's."""

from dataclasses import replace

from tile2cu.targets.sm80 import SM80

# CUDA C++ Programming Guide, "Compute Capabilities": 99 KB of shared memory a block.
SM89 = replace(SM80, name="cuda:sm_89", arch="sm_89", shared_limit=99 * 1024, capability=(8, 9), multiprocessors=142)
