"""The names of the namespace cute, for styles/cute/cute_names.txt.

`python tools/cute_names.py > transpile/tile2cu/styles/cute/cute_names.txt` asks clang-19 what the headers that
tl/cute.h includes declare. It needs the packages nvidia-cutlass and cuda-toolkit[nvcc,cccl].
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import textwrap
from importlib import metadata
from pathlib import Path

_HEADERS = [
    "cuda_runtime.h",
    "cute/tensor.hpp",
    "cute/atom/copy_atom.hpp",
    "cute/atom/mma_atom.hpp",
    "cutlass/numeric_conversion.h",
]
_INSTRUCTION = re.compile(r"SM\d+_")  # nobody else names a constant so
_NAMED = re.compile(r"^cute::([A-Za-z]\w*)$", re.MULTILINE)


def names() -> list[str]:
    """What `using namespace cute` brings: clang's list also has template parameters, which no using finds."""
    listed = sorted(set(_NAMED.findall(_clang("", "-Xclang", "-ast-list"))))
    uses = "".join(f"namespace use_{name} {{ using cute::{name}; }}\n" for name in listed)
    absent = set(re.findall(r"no member named '(\w+)'", _clang(uses)))
    return [name for name in listed if name not in absent and not _INSTRUCTION.match(name)]


def _clang(text: str, *options: str) -> str:
    """clang's output and errors; it does not know all of CUDA's functions, and lists the declarations all the same."""
    site = Path(str(metadata.distribution("nvidia-cutlass").locate_file("")))
    cuda = site / "nvidia" / "cu13" / "include"
    includes = [f"-I{each}" for each in (site / "cutlass_library" / "source" / "include", cuda, cuda / "cccl")]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "names.cpp"
        source.write_text("".join(f"#include <{each}>\n" for each in _HEADERS) + text, encoding="utf-8")
        command = ["clang++-19", "-std=c++17", "-w", "-ferror-limit=0", "-fsyntax-only", *includes, *options]
        done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def main() -> None:
    found = " ".join(names())
    sys.stdout.write("# Names of the namespace cute, by tools/cute_names.py\n")
    sys.stdout.write("\n".join(textwrap.wrap(found, 120)) + "\n")


if __name__ == "__main__":
    main()
