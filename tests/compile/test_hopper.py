"""nvcc takes the texts for sm_90a: no warning (a C75xx of ptxas means serialised wgmma), no spill, no local memory."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXTS = sorted((ROOT / "tests/host/hopper").glob("*.cu"))


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_nvcc_takes_the_text(nvcc: str, text: Path, tmp_path: Path) -> None:
    command = [
        nvcc, "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-Werror=all-warnings", "-Xptxas=-v,-warn-spills",
        "-Xcompiler=-Wall,-Wextra", f"-I{ROOT / 'headers'}", "-c", "-o", str(tmp_path / "text.o"), str(text),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr and not re.search(r"\bC75\d\d\b", done.stderr), done.stderr
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    assert frames and set(frames) == {("0", "0", "0")}
