"""The names that C, C++, CUDA and HIP already have, for styles/base/c_names.txt.

`python tools/c_names.py > transpile/tile2cu/styles/base/c_names.txt` asks the compilers: the preprocessors for macros
(g++, nvcc), clang-19 for what CUDA's headers declare in the global namespace, nm for what libraries export.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

HEADERS = Path(__file__).resolve().parents[1] / "headers"
_STANDARD = """
assert ctype errno fenv float inttypes limits locale math setjmp signal stdarg stdbool stddef stdint stdio stdlib string
time uchar wchar wctype
"""
_INCLUDES = [f"{name}.h" for name in _STANDARD.split()] + ["tl/tl.h"]
_LIBRARIES = ("libc.so.6", "libm.so.6", "libgcc_s.so.1")
_DECLARED = "Function Var Typedef TypeAlias CXXRecord Enum EnumConstant FunctionTemplate ClassTemplate"
_KINDS = {f"{kind}Decl" for kind in _DECLARED.split()}
_DECLARATION = re.compile(r"^((?:[| ] )*)[|`]-(\w+Decl) (.*)$")
_NAMED = re.compile(r"(?:^| )([A-Za-z]\w*)(?: '| definition$|$)")
_PLAIN = re.compile(r"[A-Za-z]\w*")  # a name that begins with `_` is not written anyway


def macros(*command: str, includes: tuple[str, ...] = ()) -> set[str]:
    """What is a macro after the headers, to that preprocessor."""
    text = _run([*command, f"-I{HEADERS}", _source([*_INCLUDES, *includes], command)])
    found = (line.split()[1].partition("(")[0] for line in text.splitlines() if line.startswith("#define "))
    return set(filter(_PLAIN.fullmatch, found))


def host_macros() -> set[str]:
    """What is a macro to g++, in GNU's dialect too, which engines compile in."""
    return macros("g++", "-std=gnu++17", "-x", "c++", "-dM", "-E")


def declarations() -> set[str]:
    """What the global namespace has after CUDA's headers: types, functions, variables and enumerators."""
    source = _source(_INCLUDES, ("nvcc",))
    text = _run(["nvcc", "-std=c++17", "-E", "-arch=sm_90a", f"-I{HEADERS}", source])
    preprocessed = Path(source).with_suffix(".ii")
    preprocessed.write_text(text)
    command = "clang++-19 -std=c++17 -x c++-cpp-output -fsyntax-only -ferror-limit=0 -w -Xclang -ast-dump"
    # clang does not know all of nvcc's attributes and reports them; the declarations are there.
    dump = subprocess.run([*command.split(), str(preprocessed)], capture_output=True, text=True, check=False).stdout
    return set(_declared(dump))


def _declared(dump: str) -> Iterator[str]:
    """The names in clang's tree that are declared in no namespace, class or function."""
    outer: list[str] = []
    for line in dump.splitlines():
        declaration = _DECLARATION.match(line)
        if declaration is None:
            continue
        branches, kind, rest = declaration.groups()
        del outer[len(branches) // 2 :]
        if len(outer) == len(branches) // 2 and set(outer) <= {"LinkageSpecDecl", "EnumDecl"}:
            name = _NAMED.search(rest)
            if name and kind in _KINDS:
                yield name[1]
            outer.append(kind)


def symbols() -> set[str]:
    """What the C library exports, declared in a header or not: a kernel of that name would take its place."""
    found: set[str] = set()
    for library in _LIBRARIES:
        place = _run(["g++", f"-print-file-name={library}"]).strip()
        for line in _run(["nm", "-D", "--defined-only", place]).splitlines():
            found.add(line.split()[-1].partition("@")[0])
    return set(filter(_PLAIN.fullmatch, found))


def _source(includes: list[str], command: tuple[str, ...]) -> str:
    path = Path(tempfile.mkdtemp()) / ("names.cu" if command[0] == "nvcc" else "names.cpp")
    path.write_text("".join(f"#include <{name}>\n" for name in includes))
    return str(path)


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def table() -> str:
    """The file: macros, which no name of the emitted source may be, and then what no C function may be."""
    found = host_macros() | macros("nvcc", "-std=c++17", "-E", "-Xcompiler", "-dM", "-arch=sm_90a")
    hip = "g++ -std=c++17 -x c++ -D__HIP_PLATFORM_AMD__ -E -dM"
    found |= macros(*hip.split(), includes=("hip/hip_runtime_api.h",))
    others = (declarations() | symbols()) - found
    parts = ("# Written by tools/c_names.py.", "# macros", _lines(found), "# global names", _lines(others))
    return "\n".join(parts) + "\n"


def _lines(names: set[str]) -> str:
    return textwrap.fill(" ".join(sorted(names)), 120, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.stdout.write(table())
