"""What an SM or a CU offers to thread blocks: the limits that decide occupancy, by the target of a manifest.

The transpiler's own tables (tile2cu.targets) cannot be imported here; tests/unit/runtime/test_occupancy.py compares
what both state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tile2cu_runtime.errors import DeviceError


@dataclass(frozen=True, kw_only=True)
class Chip:
    """Limits of one SM (AMD: CU), of which a GPU has `sms`.

    `registers` are those of 4 bytes of all its `partitions` (AMD: SIMDs), allocated to a warp in steps of
    `register_step`. `shared_bytes` are allocated in steps of `shared_step`, besides `shared_reserved` per block.
    [CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; CUDA Toolkit, cuda_occupancy.h;
    LLVM, AMDGPUBaseInfo.cpp: getVGPRAllocGranule, getMaxWavesPerEU, getMaxWorkGroupsPerCU]
    """

    sms: int
    shared_bytes: int
    warp_size: int = 32
    warps: int = 64
    blocks: int = 32
    registers: int = 65536
    register_step: int = 256
    partitions: int = 4
    shared_step: int = 128
    shared_reserved: int = 1024


_SM80 = Chip(sms=108, shared_bytes=164 << 10)
# A wave has up to 512 registers of 64 lanes, in steps of 8; a SIMD has 512 for its 8 waves at most.
_GFX90A = Chip(
    sms=104,
    shared_bytes=64 << 10,
    warp_size=64,
    warps=32,
    registers=4 * 512 * 64,
    register_step=8 * 64,
    shared_step=512,
    shared_reserved=0,
)
CHIPS: Mapping[str, Chip] = {
    "cuda:sm_80": _SM80,
    "cuda:sm_89": replace(_SM80, sms=142, shared_bytes=100 << 10, warps=48, blocks=24),
    "cuda:sm_90a": replace(_SM80, sms=132, shared_bytes=228 << 10),
    "cuda:sm_100a": replace(_SM80, sms=148, shared_bytes=228 << 10),
    "hip:gfx90a": _GFX90A,
    "hip:gfx942": replace(_GFX90A, sms=304),
    "hip:gfx950": replace(_GFX90A, sms=256, shared_bytes=160 << 10, shared_step=1280),
}


def chip_of(target: str) -> Chip:
    """The limits of a target. Errors: T2C-R022 for one that is not in the table."""
    if target not in CHIPS:
        raise DeviceError("T2C-R022", f"the limits of {target} are not known", help=f"known are {', '.join(CHIPS)}")
    return CHIPS[target]
