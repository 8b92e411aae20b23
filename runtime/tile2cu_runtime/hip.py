"""Builds of HIP sources by a clang with the AMDGPU back end: for the simulator, and for an AMD GPU with the HIP
runtime.

Neither needs ROCm's headers or device library (headers/tl/hip/standalone.h), so the simulated and the executed code are
the same.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tile2cu_runtime import cache, paths
from tile2cu_runtime.compile import DEPENDENCIES, OBJECT, Build, run_compiler
from tile2cu_runtime.compilers import composable_kernel_include
from tile2cu_runtime.errors import CompileError

# The simulator's input and, for gfx950, the assembly that its disassembler needs in the same folder.
CODE_OBJECT = "kernel.hsaco"
_ASSEMBLY, _RELOCATABLE = "kernel.s", "kernel_device.o"
# The first LLVM version that supports the target. [LLVM 20.1 release notes, "Changes to the AMDGPU Backend": gfx950]
_FIRST_CLANG = {"gfx90a": 19, "gfx942": 19, "gfx950": 20}
_LAST_CLANG = 23
_LANGUAGE = ("-x", "hip", "-std=c++17")
_ISA_940 = "oclc_isa_version_940.bc"
_PRECOMPILED = "tl.pch"
_NO_CUID = "-fuse-cuid=none"
_STANDALONE = ("-nogpuinc", "-nogpulib", "-DTL_HIP_STANDALONE")


@dataclass(frozen=True)
class Clang:
    """A clang that compiles for an AMD target: its command and version.

    `linker` is set if the driver cannot start its own, as in the ziglang wheel; compilation then produces assembly
    first.
    """

    command: tuple[str, ...]
    version: str
    linker: tuple[str, ...] = ()


def simulator_build(text_file: str, *, architecture: str, needs: tuple[str, ...] = ()) -> Build:
    """Compiles an emitted source for the simulator: device code into CODE_OBJECT, the launcher into the binding.

    `needs` are the libraries whose headers it includes.
    """
    clang = find_clang(architecture)
    common = _common(clang, architecture, needs)
    # The code object is embedded in the host object, as by the driver; without a cuid, names have no random part.
    embed = (_NO_CUID, "-Xclang", "-fcuda-include-gpubinary", "-Xclang", CODE_OBJECT)
    host = (*common, "-DTL_HIP_SIMULATED", "--cuda-host-only", "-O1", "-fPIC", "-fvisibility=hidden", *embed)
    return Build(
        before=code_object_commands(text_file, architecture=architecture, needs=needs),
        compile=(*host, "-MMD", "-MF", DEPENDENCIES, "-c", text_file, "-o", OBJECT),
        link=(),
        identity=clang.version,
    )


def precompiled_headers(command: tuple[str, ...], identity: str) -> tuple[str, ...]:
    """Flags for a precompiled header of the tl headers, from the cache, or built with the same flags; none where the
    command of a simulator build compiles no HIP. It saves two thirds of the launcher's time, and a third of the
    kernels'. `identity` is the compiler's.
    """
    if _NO_CUID not in command:
        return ()
    flags = command[: command.index(_NO_CUID) + 1]
    headers = paths.headers_dir()
    file = (headers / "tl" / "tl.h").stat()
    # clang knows files again by their inodes: headers that were installed anew are others, also with equal contents.
    key = cache.content_key(identity, *flags, cache.tree_key(headers), str((file.st_ino, file.st_mtime_ns)))

    def make(temporary: Path, place: Path) -> None:
        # An empty source that stays where it is: clang finds the file again when it prints a warning. -S: the driver
        # would link device code.
        source = ("-w", "-include", "tl/tl.h", "-S", os.devnull)
        output = ("--no-gpu-bundle-output", "-Xclang", "-emit-pch", "-o", _PRECOMPILED)
        run_compiler((*flags, *source, *output), temporary, "the library's headers")

    precompiled = cache.get_or_build("headers", key, make).folder / _PRECOMPILED
    # Not validated: the key has the headers' contents, clang would compare their times of modification.
    return ("-Xclang", "-fno-validate-pch", "-Xclang", "-include-pch", "-Xclang", str(precompiled))


def code_object_commands(
    text_file: str, *, architecture: str, needs: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], ...]:
    """The commands that compile an emitted text's kernels to CODE_OBJECT."""
    clang = find_clang(architecture)
    device = ("--cuda-device-only", "-O3", "-gline-tables-only", _NO_CUID)
    command = (*_common(clang, architecture, needs), *device, text_file)
    return tuple(_device_commands(clang, command, architecture))


def rocm_build(text_file: str, *, architecture: str, needs: tuple[str, ...] = ()) -> Build:
    """Compiles an emitted source for an AMD GPU: the same device code as for the simulator, linked with HIP's
    library.
    """
    library = find_hip_library()
    own = library.parents[1] / "llvm" / "bin" / "clang++"
    clang = _identified((str(own),)) if own.is_file() else find_clang(architecture)
    common = _common(clang, architecture, needs)
    command = (*common, "-O3", "-gline-tables-only", "-fPIC", "-fvisibility=hidden")
    return Build(
        compile=(*command, "-MMD", "-MF", DEPENDENCIES, "-c", text_file, "-o", OBJECT),
        link=(str(library), f"-Wl,-rpath,{library.parent}"),
        identity=clang.version,
    )


def _common(clang: Clang, architecture: str, needs: tuple[str, ...] = ()) -> tuple[str, ...]:
    include = ("-I", str(paths.headers_dir()))
    libraries = _with_ck(clang, architecture) if "composable_kernel" in needs else _STANDALONE
    return (*clang.command, *_LANGUAGE, f"--offload-arch={architecture}", *libraries, *include)


def _with_ck(clang: Clang, architecture: str) -> tuple[str, ...]:
    """The flags for ck_tile's headers, which include HIP's and call its device library."""
    # Later revisions have constexpr functions that clang-19 takes with a warning only.
    flags = ("-isystem", str(composable_kernel_include()), "-Wno-invalid-constexpr", "-fno-finite-math-only")
    root, library = find_device_library(architecture)
    headers = _headers_for_hip() if clang.linker else ()
    return (*flags, *headers, f"--rocm-path={root}", f"--rocm-device-lib-path={library}")


def _headers_for_hip() -> tuple[str, ...]:
    """The flags by which the ziglang wheel's clang includes HIP's headers, for which it lacks those of a clang.

    HIP before 6 asks for the size of a wave by a macro that clang has no longer. Errors: T2C-R010 without a clang.
    """
    for version in range(19, _LAST_CLANG):
        if found := shutil.which(f"clang-{version}"):
            answer = subprocess.run([found, "-print-resource-dir"], capture_output=True, encoding="utf-8", check=True)
            return ("-resource-dir", answer.stdout.strip(), "-D__AMDGCN_WAVEFRONT_SIZE=64", "-mcode-object-version=5")
    raise CompileError(
        "T2C-R010", "no clang's headers for HIP found, which ziglang lacks", command="clang-19 -print-resource-dir",
        help="apt-get install clang-19, or set TILE2CU_HIP_CLANG to a clang for the target",
    )  # fmt: skip


def find_device_library(architecture: str) -> tuple[Path, Path]:
    """(ROCm's folder, that of its device library with a file for the target). Errors: T2C-R010 for a missing one.

    Debian's has no file for gfx942: gfx940's differs in one constant, the version.
    """
    root = find_hip_library().parent
    while not (root / "include" / "hip" / "hip_runtime.h").is_file() and root != root.parent:
        root = root.parent
    folders = (root / "amdgcn" / "bitcode", *sorted((root / "lib").glob("**/amdgcn/bitcode")))
    found = next((each for each in folders if (each / "ockl.bc").is_file()), None)
    if found is None:
        raise CompileError(
            "T2C-R010", "ROCm's device library was not found", command=f"ls {root}/amdgcn/bitcode",
            help="apt-get install rocm-device-libs, or set ROCM_PATH to a ROCm installation",
        )  # fmt: skip
    version = f"oclc_isa_version_{architecture.removeprefix('gfx')}.bc"
    if (found / version).is_file():
        return root, found
    folder = paths.cache_dir() / "amdgcn" / "bitcode"
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in {**{each.name: each for each in found.glob("*.bc")}, version: found / _ISA_940}.items():
        if not (folder / name).exists():
            with suppress(FileExistsError):  # another process did
                (folder / name).symlink_to(file)
    return root, folder


def _device_commands(clang: Clang, compile: tuple[str, ...], architecture: str) -> Iterator[tuple[str, ...]]:
    """The commands that produce CODE_OBJECT."""
    if not clang.linker:
        yield (*compile, "--no-gpu-bundle-output", "-o", CODE_OBJECT)
        return
    yield (*compile, "-S", "-o", _ASSEMBLY)
    triple = ("-target", "amdgcn-amd-amdhsa", f"-mcpu={architecture}")
    yield (*clang.command, *triple, "-c", _ASSEMBLY, "-o", _RELOCATABLE)
    yield (*clang.linker, "-shared", _RELOCATABLE, "-o", CODE_OBJECT)


# ---- finding compilers --------------------------------------------------------------------------------------------


def find_clang(architecture: str) -> Clang:
    """A clang for the target: TILE2CU_HIP_CLANG, clang-19 or later on PATH with its ld.lld, or the ziglang wheel.

    Errors: T2C-R010 when there is none, T2C-R022 for a target that the simulator does not support.
    """
    first = _FIRST_CLANG.get(architecture)
    if first is None:
        raise CompileError(
            "T2C-R010", f"the simulator does not support {architecture}", help=f"it supports {', '.join(_FIRST_CLANG)}"
        )
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
        f"no clang for {architecture} found",
        command=f"clang-{first} --version",
        help=f"{debian}, or set TILE2CU_HIP_CLANG to a clang of version {first} or later",
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
        "libamdhip64.so, the HIP runtime, not found",
        command="hipconfig --version",
        help='install ROCm, or set ROCM_PATH to its folder; device="sim" and device="cpu" do not need it',
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
