"""Which tensors offsets of 32 bits address, tiles that overhang them included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.needs("g++")
def test_tensors_and_the_tiles_that_overhang_them_end_within_2_gib(printed: Callable[[str], Any]) -> None:
    """A tile overhangs a tensor once, not once per batch; sizes of 2 GiB are taken, and not an element more."""
    attention, gemm, whole, huge = [True, True], [True, True], [True, True, False, False, False], [False, True]
    assert printed("offsets") == attention + gemm + whole + huge
