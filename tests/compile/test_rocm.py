"""With HIP's own headers and runtime: emitted text compiles, links and loads. No AMD GPU is asked for.

Debian's HIP 5.2 stands for ROCm. What it says without a GPU is what a user without one would see.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.amdgcn.emitted import ROOT, portable
from tile2cu.api import emit_text
from tile2cu.core.origin import EmitOptions
from tile2cu.targets import find
from tile2cu_runtime import binding, hip
from tile2cu_runtime.compile import OBJECT
from tile2cu_runtime.spec import read_manifest

pytestmark = pytest.mark.needs("amd", "rocm")
NO_DEVICE = 100  # hipErrorNoDevice; Debian's HIP answers a launch with hipErrorInvalidDevice, 101


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("side", ["host", "device"])
@pytest.mark.parametrize("name", ["vector_add", "row_softmax"])
def test_text_accepts_hips_own_headers(name: str, side: str, clang_hip: str, tmp_path: Path) -> None:
    """The other tests for AMD use headers/tl/hip/standalone.h in their place."""
    source = portable(name, "hip:gfx942", tmp_path).with_suffix(".hip")
    rocm = next(path for path in hip.find_hip_library().parents if (path / "include" / "hip").is_dir())
    command = [
        clang_hip, "-x", "hip", "-std=c++17", "--offload-arch=gfx942", f"--cuda-{side}-only", "-nogpulib",
        f"--rocm-path={rocm}", f"-I{ROOT / 'headers'}", "-fsyntax-only", str(source),
    ]  # fmt: skip
    # That it is HIP's header: without it there is no such function.
    source.write_text(
        source.read_text(encoding="utf-8") + "\nauto* const asked = &hipGetDeviceCount;\n", encoding="utf-8"
    )
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly  # for each change, tests of kernels are built for the CPU
def test_a_test_is_built_for_a_gpu(clang_hip: str, tmp_path: Path) -> None:
    """NAME_test.cpp with HIP's runtime, linked with its kernel: without a GPU it is skipped."""
    options = EmitOptions(with_test=True)
    path = ROOT / "examples/row_softmax.py"
    (one,) = emit_text(path, kernel=None, target=find("hip:gfx942"), bindings={"N": 512}, options=options)
    for name, text in one.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    kernel = hip.rocm_build("row_softmax.hip", architecture="gfx942")
    rocm = next(path for path in hip.find_hip_library().parents if (path / "include" / "hip").is_dir())
    # As hipcc calls clang for a .cpp file, but for its device half: there is nothing for a device in it.
    test = [clang_hip, "-x", "hip", "--cuda-host-only", "-nogpulib", f"--rocm-path={rocm}", "-std=c++17", "-O1"]
    warnings = ["-Wall", "-Wextra", "-Werror"]
    for command in (
        kernel.compile,
        [*test, *warnings, "-DTL_ON_GPU", f"-I{ROOT / 'headers'}", "-c", "row_softmax_test.cpp", "-o", "test.o"],
        [clang_hip, OBJECT, "test.o", *kernel.link, "-lstdc++", "-lm", "-o", "program"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (77, "no device\n"), "there is a GPU to test on"


def test_launcher_is_linked_with_hips_runtime(tmp_path: Path, gxx: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path / "cache"))
    manifest = read_manifest(portable("vector_add", "hip:gfx942", tmp_path))
    build = hip.rocm_build(manifest.text_file, architecture="gfx942")
    library = binding.build_library(manifest, tmp_path, build, device="hip")
    module = library.load()
    assert module.status_string(1000 + NO_DEVICE) == "hipErrorNoDevice"
    assert module.call(0, 0, 0, 0, 0) == 0, "a grid without blocks launches nothing"
    assert module.call(64, 64, 64, 16, 0) in (1000 + NO_DEVICE, 1001 + NO_DEVICE), "there is a GPU to test on"


def test_missing_rocm_says_what_else_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(()))
    with pytest.raises(hip.CompileError, match="libamdhip64.so, the HIP runtime, not found") as raised:
        hip.find_hip_library()
    assert 'device="sim"' in raised.value.help
