"""What the PTX machine raises."""

from __future__ import annotations

from tile2cu_runtime.amdgcn.errors import SimulatorError


class PtxError(SimulatorError):
    """PTX that the machine does not understand, or a fault of the kernel: then with instruction, line and thread."""
