"""find_package(tile2cu): kernels are emitted at build time, and again when what they were made from changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tile2cu.cli import main

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """\
import tilelang.language as T
from shapes import FACTOR


def scale(N, block=128):
    @T.prim_func
    def body(A: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] = A[bx * block + i] * FACTOR

    return body
"""
# The texts are compiled as C++ for the CPU engine: no CUDA compiler is needed to see that they are built.
LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(engine LANGUAGES CXX)
find_package(tile2cu REQUIRED)
add_library(engine OBJECT user.cpp)
tile2cu_add_kernels(engine FILE kernels/scale.py BINDINGS block=256 LINE python)
get_target_property(texts engine SOURCES)
list(FILTER texts INCLUDE REGEX "cu$")
set_source_files_properties(${texts} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;c++;-O0;-w")
"""


@pytest.mark.needs("cmake")
def test_kernels_are_emitted_at_build_time(
    gxx: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "bin" / "tile2cu"
    kernels = tmp_path / "kernels"
    for path, text in (
        (script, f'#!/bin/sh\nPYTHONPATH={ROOT}/transpile:{ROOT}/runtime exec {sys.executable} -m tile2cu "$@"\n'),
        (kernels / "scale.py", KERNEL),
        (kernels / "shapes.py", "FACTOR = 2.0\n"),
        (tmp_path / "CMakeLists.txt", LISTS),
        (tmp_path / "user.cpp", '#include "scale.h"\n'),
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    script.chmod(0o755)
    assert main(["--cmakedir"]) == 0
    module = capsys.readouterr().out.strip()
    prefix = [f"-Dtile2cu_DIR={module}", f"-Dtile2cu_COMMAND={script}", f"-DCMAKE_CXX_COMPILER={gxx}"]

    def cmake(*arguments: str) -> str:
        done = subprocess.run(["cmake", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    cmake("-S", ".", "-B", "build", *prefix)
    text = tmp_path / "build/tile2cu/engine/scale/scale.cu"
    assert not text.exists(), "configuring writes nothing"
    assert "tile2cu kernels/scale.py" in cmake("--build", "build")
    assert "block = 256" in text.read_text(encoding="utf-8") and "2.0f" in text.read_text(encoding="utf-8")
    assert '#line 10 "scale.py"' in text.read_text(encoding="utf-8")
    assert "tile2cu kernels/scale.py" not in cmake("--build", "build"), "nothing changed"
    (kernels / "shapes.py").write_text("FACTOR = 3.0\n", encoding="utf-8")
    assert "tile2cu kernels/scale.py" in cmake("--build", "build"), "an import has changed"
    assert "3.0f" in text.read_text(encoding="utf-8")
