"""The emitted texts on this machine's GPU: against NumPy, and to the bit against the CPU engine on small integers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "tests/gpu/run.py"


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, str(RUN), *arguments], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.needs("g++")
def test_gpu_gives_what_the_cpu_engine_gave(nvcc: str, tmp_path: Path) -> None:
    emitted = str(ROOT / "emitted/cuda/sm_80")
    run(emitted, "--device", "cpu", "--out", str(tmp_path / "cpu"))
    expected = str(tmp_path / "cpu" / "results.json")
    printed = run(emitted, "--nvcc", nvcc, "--expect", expected, "--out", str(tmp_path / "gpu"))
    assert "0 wrong" in printed
