"""The launchers of emitted CUDA sources by g++ alone, with the headers precompiled.

nvcc takes three fifths of its time for the launcher: it splits the source, and g++ compiles all headers that kernels
need. tests/compile compiles the emitted sources by nvcc.
"""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
from pathlib import Path

from tests.built import built
from tile2cu_runtime.compile import OBJECT, run_compiler
from tile2cu_runtime.compilers import find_gxx, find_nvcc

HOST_FLAGS = ("-x", "c++", "-std=c++17", "-O0", "-fPIC", "-fvisibility=hidden", "-w")
_KERNEL = re.compile(r"^((?:template <[^\n]*>\n)?__global__ [^{;]*\)) \{\n.*?^\}$", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"\.entry ([\w$]+)")
# CUDA's headers declare functions of <cmath> again, not constexpr, which g++ takes from nvcc's front end only; and
# attributes such as __device__ and __launch_bounds__ are nvcc's.
_CUDA_RUNTIME = """\
// {version}
#include <limits>
#include <utility>
#undef _GLIBCXX_CONSTEXPR
#define _GLIBCXX_CONSTEXPR
#include <cmath>
#include <cstdlib>
#undef _GLIBCXX_CONSTEXPR
#define _GLIBCXX_CONSTEXPR constexpr
#include <crt/host_defines.h>
#undef __annotate__
#define __annotate__(...)
#include <cuda_runtime.h>
"""
# What nvcc's own code does when the library is loaded.
_REGISTRATION = """
extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
static void registered(void (*kernel)(), const char* name) {{
  __cudaRegisterFunction(nullptr, reinterpret_cast<char*>(kernel), nullptr, name, 0, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
}}
{declarations}
static const bool all_registered = ({calls}, true);
"""


def compile_cuda(command: tuple[str, ...], file: str, folder: Path) -> str:
    """Compiles an emitted source in its folder to PTX and the launcher's object; returns nvcc's output.

    `command` is the one of tile2cu_runtime.compile.ptx_build, which does both.
    """
    ptx = Path(file).with_suffix(".ptx").name
    kernels = tuple({"-c": "-ptx", OBJECT: ptx}.get(word, word) for word in command if word != "--keep")
    output = run_compiler(kernels, folder, f"the emitted source {file}")
    source, launcher = (folder / file).read_text(encoding="utf-8"), folder / f"launcher_of_{file}"
    names = _ENTRY.findall((folder / ptx).read_text(encoding="utf-8"))
    launcher.write_text(launcher_alone(source, names), encoding="utf-8")
    gencode = command.index("-gencode")
    common = (*command[:gencode], *command[gencode + 2 : command.index("--keep")], *command[command.index("-I") :][:2])
    gxx = (find_gxx().path, *HOST_FLAGS, *flags_of_host_pass(common))
    words = (*gxx, "-include", str(precompiled(gxx, source)), "-c", launcher.name, "-o", OBJECT)
    run_compiler(words, folder, f"the launcher of {file}")
    return output


def launcher_alone(source: str, names: list[str]) -> str:
    """An emitted source whose kernels are empty, and registered by their names in the PTX."""
    text, kernels = _KERNEL.subn(r"\1 {}", source)
    assert kernels == source.count("__global__ ")
    declarations = (f'extern "C" void kernel_{number}() asm("{name}");' for number, name in enumerate(names))
    calls = (f'registered(&kernel_{number}, "{name}")' for number, name in enumerate(names))
    return text + _REGISTRATION.format(declarations="\n".join(declarations), calls=", ".join(calls))


@functools.cache
def flags_of_host_pass(nvcc: tuple[str, ...]) -> tuple[str, ...]:
    """The definitions and folders of headers that nvcc gives g++ for launchers."""
    command = (*nvcc, "--dryrun", "-x", "cu", "-c", "/dev/null", "-o", OBJECT)
    said = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stderr
    (line,) = (line for line in said.splitlines() if " -E " in line and "-D__CUDA_ARCH__=" not in line)
    words = shlex.split(line)
    pairs = [pair for pair in zip(words, words[1:], strict=False) if pair[0] in ("-D", "-isystem")]
    joined = (word for word in words if word != "-D" and word.startswith(("-D", "-I")))
    return (*joined, *(word for pair in pairs for word in pair))


def precompiled(gxx: tuple[str, ...], source: str) -> Path:
    """The header that a launcher reads first: CUDA's runtime, and the tl headers unless the source changes them.

    Not CuTe's: to precompile them takes longer than two launchers.
    """
    text = _CUDA_RUNTIME.format(version=find_nvcc().version.replace("\n", " "))
    if "#include <tl/tl.h>" in source and "#define TL_" not in source:
        text += "#include <tl/tl.h>\n"
    command = ["c++-header" if word == "c++" else word for word in gxx]
    made = built("launcher.h.gch", [[*command, "launcher.h", "-o", "launcher.h.gch"]], texts={"launcher.h": text})
    return made.with_suffix("")
