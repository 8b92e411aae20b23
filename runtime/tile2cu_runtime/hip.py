"""Builds of HIP text by a clang with AMD's back end: for the simulator, and for an AMD GPU with HIP's runtime.

Neither needs ROCm's headers or device library (headers/tl/hip/standalone.h), so what was simulated is what runs.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tile2cu_runtime import paths
from tile2cu_runtime.compile import DEPENDENCIES, OBJECT, Build
from tile2cu_runtime.errors import CompileError

# What the simulator reads, and for gfx950 the assembly that its disassembler wants beside it.
CODE_OBJECT = "kernel.hsaco"
_ASSEMBLY, _RELOCATABLE = "kernel.s", "kernel_device.o"
# The first LLVM that knows the chip. [LLVM 20.1 release notes, "Changes to the AMDGPU Backend": gfx950]
_FIRST_CLANG = {"gfx90a": 19, "gfx942": 19, "gfx950": 20}
_LAST_CLANG = 23
_LANGUAGE = ("-x", "hip", "-std=c++17")
_STANDALONE = ("-nogpuinc", "-nogpulib", "-DTL_HIP_STANDALONE")


@dataclass(frozen=True)
class Clang:
    """A clang that makes code for an AMD chip: how it is called, and its version.

    `linker` is named where the driver cannot start its own, as in the ziglang wheel; code then goes by way of assembly.
    """

    command: tuple[str, ...]
    version: str
    linker: tuple[str, ...] = ()


def simulator_build(text_file: str, *, architecture: str) -> Build:
    """Compiles an emitted text for the simulator: device code into CODE_OBJECT, the launcher into the binding."""
    clang = find_clang(architecture)
    common = _common(clang, architecture)
    # The code object is taken into the host object, as the driver does it; without cuid the names carry no random part.
    embed = ("-fuse-cuid=none", "-Xclang", "-fcuda-include-gpubinary", "-Xclang", CODE_OBJECT)
    host = (*common, "--cuda-host-only", "-O1", "-fPIC", "-fvisibility=hidden", *embed)
    return Build(
        before=code_object_commands(text_file, architecture=architecture),
        compile=(*host, "-MMD", "-MF", DEPENDENCIES, "-c", text_file, "-o", OBJECT),
        link=(),
        identity=clang.version,
    )


def code_object_commands(text_file: str, *, architecture: str) -> tuple[tuple[str, ...], ...]:
    """The commands that compile an emitted text's kernels to CODE_OBJECT."""
    clang = find_clang(architecture)
    device = (*_common(clang, architecture), "--cuda-device-only", "-O3", "-gline-tables-only", text_file)
    return tuple(_device_commands(clang, device, architecture))


def rocm_build(text_file: str, *, architecture: str) -> Build:
    """Compiles an emitted text for an AMD GPU: the same device code as for the simulator, and HIP's library linked."""
    library = find_hip_library()
    own = library.parents[1] / "llvm" / "bin" / "clang++"
    clang = _identified((str(own),)) if own.is_file() else find_clang(architecture)
    common = _common(clang, architecture)
    command = (*common, "-O3", "-gline-tables-only", "-fPIC", "-fvisibility=hidden")
    return Build(
        compile=(*command, "-MMD", "-MF", DEPENDENCIES, "-c", text_file, "-o", OBJECT),
        link=(str(library), f"-Wl,-rpath,{library.parent}"),
        identity=clang.version,
    )


def _common(clang: Clang, architecture: str) -> tuple[str, ...]:
    include = ("-I", str(paths.headers_dir()))
    return (*clang.command, *_LANGUAGE, f"--offload-arch={architecture}", *_STANDALONE, *include)


def _device_commands(clang: Clang, compile: tuple[str, ...], architecture: str) -> Iterator[tuple[str, ...]]:
    """The commands that make CODE_OBJECT."""
    if not clang.linker:
        yield (*compile, "--no-gpu-bundle-output", "-o", CODE_OBJECT)
        return
    yield (*compile, "-S", "-o", _ASSEMBLY)
    triple = ("-target", "amdgcn-amd-amdhsa", f"-mcpu={architecture}")
    yield (*clang.command, *triple, "-c", _ASSEMBLY, "-o", _RELOCATABLE)
    yield (*clang.linker, "-shared", _RELOCATABLE, "-o", CODE_OBJECT)


# ---- finding compilers --------------------------------------------------------------------------------------------


def find_clang(architecture: str) -> Clang:
    """A clang for the chip: TILE2CU_HIP_CLANG, clang-19 or later on PATH with its ld.lld, the ziglang wheel.

    Errors: T2C-R010 when there is none, T2C-R022 for a chip that the simulator does not have.
    """
    first = _FIRST_CLANG.get(architecture)
    if first is None:
        raise CompileError("T2C-R010", f"the simulator has no {architecture}", help=f"it has {', '.join(_FIRST_CLANG)}")
    if wanted := os.environ.get("TILE2CU_HIP_CLANG"):
        return _identified((wanted,))
    for version in range(first, _LAST_CLANG):
        found = shutil.which(f"clang-{version}")
        if found and shutil.which(f"ld.lld-{version}"):
            return _identified((found,))
    if zig := _zig_folder():
        command = (sys.executable, "-m", "ziglang")
        named = _identified((*command, "clang")).version
        return Clang((*command, "clang", "-resource-dir", str(zig / "lib")), named, (*command, "ld.lld"))
    debian = f"apt-get install clang-{first} lld-{first} llvm-{first}" if first == 19 else "pip install ziglang==0.17.0"
    raise CompileError(
        "T2C-R010",
        f"there is no clang for {architecture}",
        command=f"clang-{first} --version",
        help=f"{debian}, or name one of version {first} or later in TILE2CU_HIP_CLANG",
    )


def find_hip_library() -> Path:
    """libamdhip64.so of ROCM_PATH, HIP_PATH, /opt/rocm, torch's wheel for ROCm, or Debian. Errors: T2C-R010."""
    roots = [Path(os.environ[name]) for name in ("ROCM_PATH", "HIP_PATH") if os.environ.get(name)]
    torch = importlib.util.find_spec("torch")
    wheel = [Path(torch.origin).parent] if torch and torch.origin else []
    for root in (*roots, Path("/opt/rocm"), *wheel, Path("/usr")):
        for folder in ("lib", "lib64", "lib/x86_64-linux-gnu"):
            for library in sorted((root / folder).glob("libamdhip64.so*")):
                return library
    raise CompileError(
        "T2C-R010",
        "there is no libamdhip64.so, HIP's runtime",
        command="hipconfig --version",
        help='install ROCm, or name its folder in ROCM_PATH; device="sim" and device="cpu" need none',
    )


def _zig_folder() -> Path | None:
    spec = importlib.util.find_spec("ziglang")
    return Path(spec.origin).parent if spec and spec.origin else None


@functools.lru_cache
def _identified(command: tuple[str, ...]) -> Clang:
    shown = " ".join((*command, "--version"))
    try:
        answer = subprocess.run([*command, "--version"], capture_output=True, encoding="utf-8", errors="replace")
    except OSError as problem:
        raise CompileError("T2C-R010", f"cannot run {command[0]}: {problem.strerror}", command=shown) from None
    if answer.returncode:
        raise CompileError("T2C-R010", f"{command[0]} does not run", command=shown, output=answer.stderr)
    return Clang(command, answer.stdout.strip())
