"""Exceptions of the PTX machine."""

from __future__ import annotations

from tile2cu_runtime.amdgcn.errors import SimulatorError


class PtxError(SimulatorError):
    """Unsupported PTX, or a fault of the kernel with instruction, line and thread."""
