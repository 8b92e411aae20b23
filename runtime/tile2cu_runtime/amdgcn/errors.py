"""What the simulator refuses."""

from __future__ import annotations


class SimulatorError(Exception):
    """A code object, a launch or an instruction that the simulator cannot run. Faults of the kernel are findings."""


class UnsupportedInstruction(SimulatorError):
    """An instruction, or a form of it, whose meaning the simulator does not have."""
