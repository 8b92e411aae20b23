"""Kernels for the PTX machine are called by ctypes."""

from tests.quick_simulator import quick_simulators  # noqa: F401
