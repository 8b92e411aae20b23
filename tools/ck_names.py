"""The names of the namespace ck_tile, for styles/ck/ck_names.txt.

`python tools/ck_names.py > transpile/tile2cu/styles/ck/ck_names.txt` asks clang-19 what the headers that tl/ck.h
includes declare. It needs HIP's headers and Composable Kernel's, as docs/ck.md says.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from tile2cu_runtime.compilers import composable_kernel_include

_HEADERS = (
    "ck_tile/core.hpp",
    "ck_tile/ops/gemm/warp/warp_gemm.hpp",
    "ck_tile/ops/gemm/warp/warp_gemm_dispatcher.hpp",
    "ck_tile/ops/reduce/block/block_reduce.hpp",
)
_NAMED = re.compile(r"^ck_tile::([A-Za-z]\w*)$", re.MULTILINE)


def names() -> list[str]:
    """What `using namespace ck_tile` brings: clang's list also has template parameters, which no using finds."""
    listed = sorted(set(_NAMED.findall(_clang("", "-Xclang", "-ast-list"))))
    uses = "".join(f"namespace use_{name} {{ using ck_tile::{name}; }}\n" for name in listed)
    absent = set(re.findall(r"no member named '(\w+)'", _clang(uses)))
    return [name for name in listed if name not in absent]


def _clang(text: str, *options: str) -> str:
    """clang's output and errors."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "names.hip"
        source.write_text("".join(f"#include <{each}>\n" for each in _HEADERS) + text, encoding="utf-8")
        language = ("-x", "hip", "-std=c++17", "--cuda-host-only", "-nogpulib", "--rocm-path=/usr", "-w")
        include = f"-I{composable_kernel_include()}"
        command = ["clang++-19", *language, "-ferror-limit=0", "-fsyntax-only", include, *options, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def main() -> None:
    sys.stdout.write("# Names of the namespace ck_tile, by tools/ck_names.py\n")
    sys.stdout.write("\n".join(textwrap.wrap(" ".join(names()), 120)) + "\n")


if __name__ == "__main__":
    main()
