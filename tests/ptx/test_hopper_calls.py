"""The calls of tests/host/hopper_calls.py, which the CPU engine and a GPU answer, on the PTX machine.

TILE2CU_PTX_ALL=1 also runs every product of wgmma (13 s of nvcc).
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

from tests.host.hopper_calls import CALLS
from tile2cu_runtime import paths
from tile2cu_runtime.binding import Library
from tile2cu_runtime.compile import PTX_FILE
from tile2cu_runtime.simulator import PtxMachine, Simulator
from tile2cu_runtime.tensors import view_of

ROOT = Path(__file__).resolve().parents[2]
NAMES = [name for name in CALLS if name != "products" or os.environ.get("TILE2CU_PTX_ALL")]


def built(name: str, folder: Path, nvcc: str, gxx: str) -> Library:
    """The text with its launcher, whose calls of the CUDA runtime end in launches.h, and its PTX."""
    text = ROOT / f"tests/host/hopper/{name}.cu"
    flags = [
        "-std=c++17",
        "-O1",
        "-gencode",
        "arch=compute_90a,code=compute_90a",
        f"-I{ROOT / 'headers'}",
        "-Xcompiler=-fPIC",
    ]
    subprocess.run([nvcc, *flags, "-keep", f"-keep-dir={folder}", "-c", text, "-o", folder / "text.o"], check=True)
    (folder / f"{name}.ptx").rename(folder / PTX_FILE)
    runtime = folder / "runtime.cpp"
    runtime.write_text(f'#include "{paths.engine_dir().parent / "launches.h"}"\n')
    library = folder / "text.so"
    hidden = ["-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run([gxx, *hidden, runtime, folder / "text.o", "-o", library], check=True)
    return Library(folder=folder, module="", path=library, seconds=0.0)


@pytest.mark.parametrize("name", NAMES)
def test_text_is_right(name: str, tmp_path: Path, nvcc: str, gxx: str) -> None:
    library = built(name, tmp_path, nvcc, gxx)
    simulator, functions = Simulator(library, PtxMachine(library, 90)), ctypes.CDLL(str(library.path))
    for call in CALLS[name](functions):
        output = call.output.copy()
        views = {str(number): view_of(array) for number, array in enumerate((*call.inputs, output))}
        with simulator.turn({name: view for name, view in views.items() if view}, check=False, measure=False):
            assert call.run(functions, [array.ctypes.data for array in (*call.inputs, output)]) == 0, call.name
        call.check(output)
