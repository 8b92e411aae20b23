"""The kernels of this folder, compiled for the CPU engine once a session, and programs that print what types say."""

from __future__ import annotations

import ctypes
import functools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # engine_kernels: pytest imports tests without their folder

from engine_kernels import Kernels  # noqa: E402

from tile2cu_runtime.compile import host_flags  # noqa: E402
from tile2cu_runtime.engine import load_engine  # noqa: E402

KERNELS = Path(__file__).parent / "kernels"
STRICT = ("-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="session")
def kernels(headers: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Kernels]:
    """`kernels("products")`: the C functions of kernels/products.cu."""
    folder = tmp_path_factory.mktemp("headers")

    @functools.cache
    def build(name: str) -> Kernels:
        engine = load_engine()
        library = folder / f"{name}.so"
        command = ["g++", "-x", "c++", *host_flags(check=True), *STRICT, "-I", str(headers), "-c"]
        subprocess.run([*command, str(KERNELS / f"{name}.cu"), "-o", f"{library}.o"], check=True)
        subprocess.run(["g++", "-shared", f"{library}.o", "-o", str(library)], check=True)
        return Kernels(engine, ctypes.CDLL(str(library)))

    return build


@pytest.fixture(scope="session")
def printed(headers: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """`printed("layouts")`: the JSON that the program kernels/layouts.cpp prints. It runs without an engine."""
    folder = tmp_path_factory.mktemp("programs")

    @functools.cache
    def run(name: str) -> Any:
        program = folder / name
        command = ["g++", "-std=c++17", "-O1", *STRICT, "-Wno-psabi", "-I", str(headers)]
        subprocess.run([*command, str(KERNELS / f"{name}.cpp"), "-o", str(program)], check=True)
        return json.loads(subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout)

    return run
