"""Compiles the kernels of these tests to code objects."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

KERNELS = Path(__file__).parent / "kernels"
FLAGS = ("--cuda-device-only", "-nogpuinc", "-nogpulib", "-gline-tables-only", "-std=c++17", "-w")


def compile_hip(source: Path, target: str, folder: Path, *flags: str) -> Path:
    """The code object of a HIP source, by clang-19; for gfx950 by the ziglang wheel, with its assembly beside it."""
    out = folder / f"{source.stem}_{target}.hsaco"
    arguments = ["-x", "hip", f"--offload-arch={target}", *FLAGS, f"-I{KERNELS}", *(flags or ("-O3",)), str(source)]
    if target != "gfx950":
        run([shutil.which("clang-19") or "clang-19", *arguments, "--no-gpu-bundle-output", "-o", str(out)])
        return out
    zig = [sys.executable, "-m", "ziglang"]
    assembly, relocatable = out.with_suffix(".s"), out.with_suffix(".o")
    run([*zig, "clang", *arguments, "-S", "-o", str(assembly)])
    triple = ["-target", "amdgcn-amd-amdhsa", f"-mcpu={target}"]
    run([*zig, "clang", *triple, "-c", str(assembly), "-o", str(relocatable)])
    run([*zig, "ld.lld", "-shared", str(relocatable), "-o", str(out)])
    return out


def compile_text(text: str, name: str, target: str, folder: Path, *flags: str) -> Path:
    """The code object of a HIP source, which may include "standalone.h"."""
    source = folder / f"{name}.hip"
    source.write_text(text, encoding="utf-8")
    return compile_hip(source, target, folder, *flags)


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
