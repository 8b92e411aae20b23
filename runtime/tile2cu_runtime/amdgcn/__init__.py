"""Runs AMD code objects (gfx90a, gfx942, gfx950) without a GPU, instruction by instruction, with checks.

    result = simulate(Path("gemm.hsaco"), "gemm", (4, 4), 256, [a, b, c, m, n, k])
    assert result.is_clean, result.findings

Workgroups run concurrently in lockstep; findings name kernel, workgroup, wave, lane, instruction and source line.

Limits: no timing and no hazard checks (s_nop is ignored); transcendental functions are correctly rounded, where the
hardware approximates; MFMAs round once; the MODE register is ignored (denormals are kept). Races are detected in LDS
only, not in global memory; an LDS atomic counts as a read. Unsupported: sparse MFMA, MFMA broadcasts (cbsz, abid, blgp
outside f8f6f4), ds_read_tr of 6 and 4 bits, clamped integers, images; flat atomics are assumed to address global
memory. Never compared with AMD hardware.
"""

from tile2cu_runtime.amdgcn.code_object import CodeObject
from tile2cu_runtime.amdgcn.cost import CostReport
from tile2cu_runtime.amdgcn.errors import SimulatorError, UnsupportedInstruction
from tile2cu_runtime.amdgcn.findings import CodePlace, SimulatorFinding
from tile2cu_runtime.amdgcn.simulate import Result, simulate

__all__ = [
    "CodeObject",
    "CodePlace",
    "CostReport",
    "Result",
    "SimulatorError",
    "SimulatorFinding",
    "UnsupportedInstruction",
    "simulate",
]
