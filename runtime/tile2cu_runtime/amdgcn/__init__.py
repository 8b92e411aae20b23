"""Runs AMD code objects (gfx90a, gfx942, gfx950) without a GPU, instruction by instruction, with checks.

    result = simulate(Path("gemm.hsaco"), "gemm", (4, 4), 256, [a, b, c, m, n, k])
    assert result.is_clean, result.findings

Semantics only: no timing, no hazards, no denormal flushing, correctly rounded transcendentals. It was never compared
with AMD hardware.
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
