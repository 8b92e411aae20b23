"""The engine and the kernels that are run on it, compiled once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # kernels_under_test: pytest imports tests without their folder

from kernels_under_test import Bench  # noqa: E402

from tile2cu_runtime.engine import load_engine  # noqa: E402


@pytest.fixture(scope="session")
def bench() -> Bench:
    return Bench(load_engine())
