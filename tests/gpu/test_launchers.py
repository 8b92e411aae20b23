"""A kernel that has to ask for its shared memory: captured first, from threads, on all GPUs, after a reset."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tile2cu.cli import main
from tile2cu_runtime.device import compute_capability

ROOT = Path(__file__).resolve().parents[2]


def run(*command: object) -> list[str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_graph_threads_devices_and_a_reset(nvcc: str, tmp_path: Path) -> None:
    assert main([str(ROOT / "examples/gemm_relu.py"), "-o", str(tmp_path), "-D", "num_stages=4"]) == 0
    capability = compute_capability()
    assert capability
    chip = "{}{}".format(*capability)
    options = ["-std=c++17", "-O2", f"-gencode=arch=compute_{chip},code=sm_{chip}", f"-I{ROOT / 'headers'}"]
    texts = [tmp_path / "gemm_relu.cu", ROOT / "tests/gpu/launchers.cu"]
    run(nvcc, *options, f"-I{tmp_path}", "-o", tmp_path / "program", *texts)
    captured, *threads, reset = run(tmp_path / "program")
    assert captured == "captured: status 0, graph 0, ran early 0, wrong 0"
    assert threads and threads == [f"threads, device {i}: refused 0, wrong 0" for i in range(len(threads))]
    assert reset == "after a reset: status 0, error 0, wrong 0"
