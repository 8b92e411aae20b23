"""A launcher asks a device once for a kernel's shared memory, from any thread, and never starts a kernel without it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.built import built
from tests.conftest import demand
from tile2cu import emit

pytestmark = pytest.mark.nightly  # for each change, tests/ptx calls launchers, and goldens have their text
ROOT = Path(__file__).resolve().parents[2]
MAIN = ROOT / "tests/ptx/shared_memory.cpp"


@pytest.fixture(scope="module")
def printed() -> dict[str, list[int]]:
    """What the program counted, by the line's title: launches, refused, pairs, most, last error."""
    (emitted,) = emit(ROOT / "examples/gemm_relu.py", num_stages=4).values()
    include = f"-I{ROOT / 'headers'}"
    # No device code runs: nvcc need not optimise it.
    kernel = ["-std=c++17", "-gencode=arch=compute_80,code=compute_80", "-Xcicc=-O0", "-Xcompiler=-fPIC", include]
    main = ["-std=c++17", "-Wall", "-Wextra", "-Werror", include, "-I.", "kernel.o", str(MAIN), "-pthread"]
    commands = [
        [demand("nvcc"), *kernel, "-c", "gemm_relu.cu", "-o", "kernel.o"],
        [demand("g++"), *main, "-o", "program"],
    ]
    program = built("program", commands, MAIN, texts=emitted.files)
    lines = subprocess.run([program], capture_output=True, text=True, timeout=600, check=True).stdout.splitlines()
    return {line.partition(":")[0]: [int(n) for n in re.findall(r"\d+", line.partition(":")[2])] for line in lines}


def test_once_for_each_kernel_and_device(printed: dict[str, list[int]]) -> None:
    assert printed["three devices"] == [30, 0, 6, 1, 0]


def test_from_many_threads(printed: dict[str, list[int]]) -> None:
    """Those that come before the first is done may ask again; none starts a kernel before the device was asked."""
    launches, refused, pairs, most, error = printed["eight threads"]
    assert (launches, refused, pairs, error) == (1600, 0, 8, 0) and 1 <= most <= 2


def test_a_device_that_has_forgotten_is_asked_again(printed: dict[str, list[int]]) -> None:
    """The refused launch leaves no error behind for the caller to find."""
    assert printed["after a reset"] == [2, 2, 2, 1, 0]


def test_devices_beyond_the_mask(printed: dict[str, list[int]]) -> None:
    assert printed["device 70"] == [6, 0, 2, 3, 0]


def test_a_device_with_less_shared_memory_is_rejected(printed: dict[str, list[int]]) -> None:
    """Such as 8.6, which runs code for 8.0: nothing is launched. TL_WRONG_DEVICE is 4."""
    assert printed["too little"][:3] == [4, 4, 0] and printed["too little"][3] > 48 << 10
    assert printed["just enough"][:3] == [0, 0, 1]
