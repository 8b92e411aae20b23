"""The conformance program builds on both sides, and on the engine runs without a finding.

On a GPU: `python tests/cpu/conformance/run.py --device cuda --out gpu.bin --expect cpu.bin`.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "conformance" / "run.py"
# The file that an NVIDIA H200 wrote (nvcc 13.0, 2026-11-20).
GPU_BYTES = 3765200
GPU_SHA256 = "b1783445219f69bc9c028322df6c1bb6c89d6bd296609847c0c3de6c4146e1bb"


def test_engine_writes_the_bytes_of_the_gpu(tmp_path: Path) -> None:
    out = tmp_path / "cpu.bin"
    run = subprocess.run(
        [sys.executable, RUN, "--device", "cpu", "--out", out], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    content = out.read_bytes()
    assert (len(content), hashlib.sha256(content).hexdigest()) == (GPU_BYTES, GPU_SHA256)


@pytest.mark.nightly  # its file of a GPU is compared above; the headers' own kernels are compiled for each change
@pytest.mark.needs("nvcc")
def test_program_builds_for_the_gpu(tmp_path: Path, nvcc: str) -> None:
    program = tmp_path / "conformance"
    command = [sys.executable, RUN, "--device", "cuda", "--build", program, "--nvcc", nvcc]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert program.exists()
