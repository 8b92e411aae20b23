"""Exceptions of the simulator."""

from __future__ import annotations


class SimulatorError(Exception):
    """An unsupported code object, launch or instruction. Faults of the kernel are findings instead."""


class UnsupportedInstruction(SimulatorError):
    """An instruction, or a form of it, that the simulator does not implement."""
