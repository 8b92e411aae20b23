"""The inference engine, built by CMake from its vendored kernels and run by CTest: on the CPU engine, and on a GPU."""

import subprocess
from pathlib import Path

import pytest

from tile2cu_runtime.engine import build_engine

FOLDER = Path(__file__).parent


def build_and_test(build: Path, *options: str) -> str:
    """CTest's report. Raises AssertionError with what was printed when a step fails."""
    printed = ""
    for command in (
        ["cmake", "-S", str(FOLDER), "-B", str(build), *options],
        ["cmake", "--build", str(build), "--parallel", "2"],
        ["ctest", "--test-dir", str(build), "--verbose"],
    ):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
        printed = done.stdout
    return printed


@pytest.mark.nightly
@pytest.mark.needs("g++", "cmake")
def test_the_block_on_the_cpu_engine(tmp_path: Path) -> None:
    printed = build_and_test(tmp_path / "build", f"-DCPU_ENGINE={build_engine()}")
    assert "100% tests passed" in printed
    for choice in ("few_rows", "hopper", "any"):
        assert f"linear by `{choice}`" in printed, "each entry of the dispatch runs"


@pytest.mark.needs("gpu", "nvcc", "cmake")
def test_the_block_on_a_gpu(nvcc: str, tmp_path: Path) -> None:
    printed = build_and_test(tmp_path / "build", "-DON_GPU=ON", f"-DCMAKE_CUDA_COMPILER={nvcc}")
    assert "100% tests passed" in printed and "a captured graph: ok" in printed
