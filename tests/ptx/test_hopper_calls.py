"""The calls of tests/host/hopper_calls.py, which the CPU engine and a GPU answer, on the PTX machine.

TILE2CU_PTX_ALL=1 runs all of them: every product of wgmma takes nvcc 13 s.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.host.hopper_calls import CALLS
from tile2cu_runtime import SimulationError, paths
from tile2cu_runtime.binding import Library
from tile2cu_runtime.simulator import PtxMachine, Simulator
from tile2cu_runtime.tensors import view_of

ROOT = Path(__file__).resolve().parents[2]
NAMES = list(CALLS) if os.environ.get("TILE2CU_PTX_ALL") else ["boxes", "clusters"]


def built(name: str, folder: Path, nvcc: str, gxx: str, headers: Path = ROOT / "headers") -> Library:
    """The text with its launcher, whose calls of the CUDA runtime end in launches.h, and its PTX."""
    text = ROOT / f"tests/host/hopper/{name}.cu"
    flags = [
        "-std=c++17",
        "-O1",
        "-gencode",
        "arch=compute_90a,code=compute_90a",
        f"-I{headers}",
        "-Xcompiler=-fPIC",
    ]
    subprocess.run([nvcc, *flags, "-keep", f"-keep-dir={folder}", "-c", text, "-o", folder / "text.o"], check=True)
    runtime = folder / "runtime.cpp"
    runtime.write_text(f'#include "{paths.engine_dir().parent / "launches.h"}"\n', encoding="utf-8")
    library = folder / "text.so"
    hidden = ["-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run([gxx, *hidden, runtime, folder / "text.o", "-o", library], check=True)
    return Library(folder=folder, module="", path=library, seconds=0.0)


def run_all(name: str, library: Library) -> None:
    """Makes all calls of a text. Errors: AssertionError for a wrong result, SimulationError."""
    simulator, functions = Simulator(library, PtxMachine(library, 90)), ctypes.CDLL(str(library.path))
    for call in CALLS[name](functions):
        output = call.output.copy()
        views = {str(number): view_of(array) for number, array in enumerate((*call.inputs, output))}
        with simulator.turn({name: view for name, view in views.items() if view}, check=False, measure=False):
            status = call.run(functions, [array.ctypes.data for array in (*call.inputs, output)])
        assert status == 0, call.name
        call.check(output)


@pytest.mark.parametrize("name", NAMES)
def test_text_is_right(name: str, tmp_path: Path, nvcc: str, gxx: str) -> None:
    run_all(name, built(name, tmp_path, nvcc, gxx))


IN_FLIGHT = "a copy to byte .* is in flight"  # the barrier's own block takes it for its own
FAULTS = [
    ("boxes", "tma.h", '"r"(at[4]), "r"(at[3]), "r"(at[2])', '"r"(at[4]), "r"(at[2]), "r"(at[3])', "load 7"),
    ("clusters", "cluster.h", '"barrier.cluster.wait.acquire.aligned;"', '""', "a second arrival without a wait"),
    (
        "clusters",
        "cluster.h",
        '"r"(shared_address_in_block(&barrier, rank))',
        '"r"(shared_address(&barrier))',
        IN_FLIGHT,
    ),
]


@pytest.mark.parametrize(("name", "file", "right", "wrong", "said"), FAULTS)
def test_a_fault_is_found(
    name: str, file: str, right: str, wrong: str, said: str, tmp_path: Path, nvcc: str, gxx: str
) -> None:
    """In a copy of the headers."""
    headers = Path(shutil.copytree(ROOT / "headers", tmp_path / "headers"))
    path = headers / "tl/cuda/sm90" / file
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    with pytest.raises((AssertionError, SimulationError), match=said):
        run_all(name, built(name, tmp_path, nvcc, gxx, headers))
