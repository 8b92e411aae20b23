"""The texts of tests/host/hopper on a GPU with wgmma: every product, box and launcher, against exact results."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "host"))  # hopper_calls, which the CPU engine's tests use too

from hopper_calls import CALLS, Call  # noqa: E402


def build(nvcc: str, name: str, folder: Path) -> ctypes.CDLL:
    library = folder / f"{name}.so"
    command = [nvcc, "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-Xcompiler=-fPIC", "-shared"]
    text = TESTS / "host/hopper" / f"{name}.cu"
    subprocess.run([*command, f"-I{TESTS.parent / 'headers'}", "-o", str(library), str(text)], check=True)
    return ctypes.CDLL(str(library))


def run(library: ctypes.CDLL, call: Call) -> None:
    """Runs the call in the GPU's memory and checks what it wrote. Memory without content is filled with ones."""
    import torch

    output = call.output.copy()
    if call.fresh:
        output.view(np.uint8).reshape(-1)[:] = 0xFF
    arrays = [np.ascontiguousarray(array).view(np.uint8).reshape(-1) for array in (*call.inputs, output)]
    memories = [torch.zeros(max(array.nbytes, 16), dtype=torch.uint8, device="cuda") for array in arrays]
    for memory, array in zip(memories, arrays, strict=True):
        memory[: array.nbytes] = torch.from_numpy(array.copy())
    status = call.run(library, [memory.data_ptr() for memory in memories])
    torch.cuda.synchronize()
    assert status == 0, (call.name, status)
    call.check(memories[-1][: output.nbytes].cpu().numpy().view(output.dtype).reshape(output.shape))


@pytest.mark.parametrize("name", CALLS)
def test_text_is_right(nvcc: str, name: str, tmp_path: Path) -> None:
    import torch

    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("needs a GPU with wgmma (compute capability 9.0)")
    library = build(nvcc, name, tmp_path)
    for call in CALLS[name](library):
        run(library, call)
