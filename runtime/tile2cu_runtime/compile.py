"""Compiler commands as data, and their execution: one emitted source to one object file."""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tile2cu_runtime import cache, paths
from tile2cu_runtime.compilers import cudart_dir, cutlass_include, find_gxx, find_nvcc
from tile2cu_runtime.errors import CompileError

OBJECT = "kernel.o"
DEPENDENCIES = "kernel.d"
_PRECOMPILED = "precompiled.h"
# libstdc++'s <cmath> has C++17's special functions, as std::riemann_zeta: templates behind functions that are none,
# which g++ instantiates anew in each use of a precompiled header, called or not: a tenth of a small kernel's build.
_PRECOMPILED_TEXT = """\
#include <cstddef>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#include <{header}>
"""

# Required by the CPU engine's headers: uint4 copies of half data alias, and 64-byte aligned values are passed by value.
# Findings use functions and lines, inlined ones too, but no variables: g++ omits those, which saves a tenth of its
# time.
_HOST_FLAGS = ("-std=c++17", "-g1", "-fPIC", "-fno-strict-aliasing")
_HOST_WARNINGS = ("-Wall", "-Wno-unused", "-Wno-unknown-pragmas", "-Wno-psabi")
# The engine defines the __tsan_* hooks, and __ubsan_handle_out_of_bounds for indices of private arrays. It does not use
# function entry and exit hooks, and findings use lines, not variable locations, whose tracking takes an eighth of g++'s
# time.
_HOOKS = ("-fsanitize=thread,bounds", "--param=tsan-instrument-func-entry-exit=0", "-Wno-tsan")
# -Og takes 5 to 20 % less of g++'s time than -O1, and the hooks take most of a run.
_CHECK_FLAGS = ("-Og", "-fno-var-tracking", *_HOOKS)
_DEVICE_FLAGS = ("-O3", "-std=c++17", "-lineinfo", "-Xcompiler", "-fPIC,-fvisibility=hidden")
# ptxas C75xx: a setmaxnreg, a wgmma overlap or the like was ignored; the kernel is correct but slow.
_IGNORED = re.compile(r"^.*\(C75\d\d\).*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Build:
    """The commands that turn a source into a part of a library.

    `compile` runs in the folder of the source and writes `kernel.o` and `kernel.d` there, after the commands `before`;
    `link` are linker arguments after the object. `identity` identifies the compilers by version.
    """

    compile: tuple[str, ...]
    link: tuple[str, ...]
    identity: str
    before: tuple[tuple[str, ...], ...] = ()


def host_flags(*, check: bool) -> tuple[str, ...]:
    """g++ flags for C++ that runs on the CPU engine, with the engine's checks or optimised."""
    f16c = ("-mf16c",) if platform.machine() in ("x86_64", "AMD64") else ()
    return (*_HOST_FLAGS, *f16c, *_HOST_WARNINGS, *(_CHECK_FLAGS if check else ("-O2",)))


def host_build(text_file: str, *, check: bool, warp_size: int = 32) -> Build:
    """Compiles an emitted source with g++ for the CPU engine, with warps (AMD: wavefronts) of `warp_size` threads.

    Linked without -fsanitize, so that libtsan is not used.
    """
    gxx = find_gxx()
    # Hidden: several kernels in one process may have types of the same name.
    flags = (*host_flags(check=check), f"-DTL_WARP_SIZE={warp_size}", "-fvisibility=hidden")
    command = (gxx.path, "-x", "c++", *flags, *_common(text_file))
    return Build(compile=command, link=(), identity=gxx.version)


def precompiled_headers(build: Build, header: str = "tl/tl.h") -> tuple[str, ...]:
    """Flags for a precompiled header of the tl headers, which take three quarters of a host build's time; from the
    cache, or built with the same flags. g++ falls back to the headers if it does not match. It lacks the special
    functions of <cmath>.
    """
    text = _PRECOMPILED_TEXT.format(header=header)
    flags = build.compile[1 : build.compile.index("-I")]
    headers = paths.headers_dir()
    key = cache.content_key(build.identity, *flags, str(headers), cache.tree_key(headers), text)

    def make(temporary: Path, place: Path) -> None:
        (temporary / _PRECOMPILED).write_text(text, encoding="utf-8")
        command = (build.compile[0], "-x", "c++-header", *flags[2:], "-I", str(headers), _PRECOMPILED)
        run_compiler(command, temporary, "the library's headers")

    return ("-include", str(cache.get_or_build("headers", key, make).folder / _PRECOMPILED))


def cuda_build(text_file: str, *, architecture: str, device: int | None, needs: tuple[str, ...] = ()) -> Build:
    """Compiles an emitted source with nvcc. `architecture` is sm_80, sm_90a, ...; `device` the GPU's, 90 for 9.0.

    `needs` names the libraries whose headers it includes.
    """
    nvcc = find_nvcc()
    libraries, versions = _libraries(needs)
    command = (nvcc.path, *gencode(architecture, device), *_DEVICE_FLAGS, *libraries, *_common(text_file))
    link = (f"-L{cudart_dir(nvcc)}", "-lcudart_static", "-ldl", "-lrt", "-lpthread")
    return Build(compile=command, link=link, identity=f"{nvcc.version}\n{find_gxx().version}{versions}")


def ptx_build(text_file: str, *, architecture: str, needs: tuple[str, ...] = ()) -> Build:
    """Compiles an emitted source for the PTX machine in one run: the launcher into the binding, and the PTX, which nvcc
    keeps in the same folder. `needs` as in cuda_build.
    """
    nvcc = find_nvcc()
    libraries, versions = _libraries(needs)
    number = architecture.removeprefix("sm_")
    code = ("-gencode", f"arch=compute_{number},code=compute_{number}")
    flags = ("-std=c++17", "-lineinfo", "-Xcompiler", "-O1,-fPIC,-fvisibility=hidden")
    return Build(
        compile=(nvcc.path, *code, *flags, *libraries, "--keep", *_common(text_file)),
        link=(),
        identity=f"{nvcc.version}\n{find_gxx().version}{versions}",
    )


def cubin_command(text_file: str, *, architecture: str, needs: tuple[str, ...], output: str) -> tuple[str, ...]:
    """nvcc's command for the kernels of an emitted source alone, as SASS; ptxas states their resources. `needs` as in
    cuda_build."""
    number = architecture.removeprefix("sm_")
    code = ("-gencode", f"arch=compute_{number},code=sm_{number}")
    libraries, _ = _libraries(needs)
    include = ("-I", str(paths.headers_dir()))
    return (find_nvcc().path, *code, "-O3", "-std=c++17", "-lineinfo", *libraries, *include) + (
        "-Xptxas", "-v", "-cubin", text_file, "-o", output,
    )  # fmt: skip


def _libraries(needs: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """nvcc's flags for the headers of these libraries, and their versions. Errors: T2C-R010 for a missing one."""
    if "cutlass" not in needs:
        return (), ""
    folder = cutlass_include()
    flags = ("-isystem", str(folder), "--expt-relaxed-constexpr", "-DNDEBUG")  # asserts would hide launchers' statuses
    return flags, (folder / "cutlass" / "version.h").read_text(encoding="utf-8")


def gencode(architecture: str, device: int | None = None) -> tuple[str, ...]:
    """nvcc's code generation flags. Not `-arch=sm_90a`: nvcc 13 then also assembles for sm_90, which has no wgmma.

    sm_80 code runs on later GPUs: it is assembled for the present device or, if that is unknown, embedded as PTX.
    sm_90a code runs on 9.0 only.
    """
    number = architecture.removeprefix("sm_")
    if not number.isdigit():
        return ("-gencode", f"arch=compute_{number},code=sm_{number}")
    if device is None:
        return ("-gencode", f"arch=compute_{number},code=[sm_{number},compute_{number}]")
    return ("-gencode", f"arch=compute_{number},code=sm_{device}")


def run_compiler(command: tuple[str, ...], folder: Path, what: str) -> str:
    """Runs a compiler in a folder and returns its output. Errors: T2C-R011 when it fails."""
    shown = f"cd {shlex.quote(str(folder))} && {shlex.join(command)}"
    try:
        answer = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
        )
    except OSError as problem:
        raise CompileError("T2C-R010", f"cannot run {command[0]}: {problem.strerror}", command=shown) from None
    if answer.returncode:
        raise CompileError("T2C-R011", f"{what} does not compile", command=shown, output=answer.stdout)
    return answer.stdout


def ignored_by_ptxas(output: str) -> tuple[str, ...]:
    """ptxas's messages about directives and instructions that it ignored, as setmaxnreg, each once."""
    return tuple(dict.fromkeys(line.strip() for line in _IGNORED.findall(output)))


def read_dependencies(depfile: Path) -> tuple[str, ...]:
    """The prerequisites in a -MMD dependency file, as written by the compiler."""
    text = depfile.read_text(encoding="utf-8").replace("\\\n", " ")
    return tuple(shlex.split(text.split(":", 1)[1]))


def _common(text_file: str) -> tuple[str, ...]:
    include = ("-I", str(paths.headers_dir()))
    return (*include, "-MMD", "-MF", DEPENDENCIES, "-c", text_file, "-o", OBJECT)
