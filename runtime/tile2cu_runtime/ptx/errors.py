"""What the PTX machine raises."""

from __future__ import annotations


class PtxError(Exception):
    """PTX that the machine does not understand, or a fault of the kernel: then with instruction, line and thread."""
