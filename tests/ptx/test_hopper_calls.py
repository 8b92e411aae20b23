"""The calls of tests/host/hopper_calls.py, which the CPU engine and a GPU answer, on the PTX machine.

TILE2CU_PTX_ALL=1 runs all of them: every product of wgmma takes nvcc 13 s.
"""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.built import built
from tests.host.hopper_calls import CALLS
from tile2cu_runtime import SimulationError, paths
from tile2cu_runtime.binding import Library
from tile2cu_runtime.simulator import PtxMachine, Simulator
from tile2cu_runtime.tensors import view_of

pytestmark = pytest.mark.nightly  # for each change: the same calls on the CPU engine, in tests/host
ROOT = Path(__file__).resolve().parents[2]
NAMES = list(CALLS) if os.environ.get("TILE2CU_PTX_ALL") else ["boxes", "clusters"]


def library_of(name: str, nvcc: str, gxx: str) -> Library:
    """The text with its launcher, whose calls of the CUDA runtime end in launches.h, and its PTX."""
    text, runtime = ROOT / f"tests/host/hopper/{name}.cu", paths.engine_dir().parent / "launches.h"
    code = ["-gencode", "arch=compute_90a,code=compute_90a"]
    flags = ["-std=c++17", "-O1", *code, f"-I{ROOT / 'headers'}", "-Xcompiler=-fPIC", "-keep"]
    hidden = ["-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden"]
    commands = [
        [nvcc, *flags, "-c", str(text), "-o", "text.o"],
        [gxx, *hidden, "-include", str(runtime), "-x", "c++", os.devnull, "-x", "none", "text.o", "-o", "text.so"],
    ]
    library = built("text.so", commands, text, runtime)
    return Library(folder=library.parent, module="", path=library, seconds=0.0)


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
def test_text_is_right(name: str, nvcc: str, gxx: str) -> None:
    run_all(name, library_of(name, nvcc, gxx))


IN_FLIGHT = "a copy to byte .* is in flight"  # the barrier's own block takes it for its own
# What the headers' instructions become, and what nvcc would make of the same with a fault.
FAULTS = [
    ("boxes", r"(tensor\.5d.*\{%\w+, )(%\w+), (%\w+)", r"\1\3, \2", "load 7"),
    ("clusters", r"barrier\.cluster\.wait\.acquire\.aligned;", "", "a second arrival without a wait"),
    (
        "clusters",  # the barrier's address, the last before the copy
        r"mapa\.shared::cluster\.u32 (%\w+), (%\w+), %\w+;([^;]*cp\.async\.bulk\.shared::cluster\.shared::cta)",
        r"mov.u32 \1, \2;\3",
        IN_FLIGHT,
    ),
]


@pytest.mark.parametrize(("name", "right", "wrong", "said"), FAULTS)
def test_a_fault_is_found(name: str, right: str, wrong: str, said: str, tmp_path: Path, nvcc: str, gxx: str) -> None:
    """In a copy of the PTX: nvcc need not compile the text again."""
    library = library_of(name, nvcc, gxx)
    (ptx,) = library.folder.glob("*.ptx")
    text, places = re.subn(right, wrong, ptx.read_text(encoding="utf-8"))
    assert places
    (tmp_path / ptx.name).write_text(text, encoding="utf-8")
    with pytest.raises((AssertionError, SimulationError), match=said):
        run_all(name, replace(library, folder=tmp_path))
