"""The kernels of this folder, compiled once for the CPU engine, and programs that print properties of types."""

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

from tests.built import built, built_for_engine  # noqa: E402
from tile2cu_runtime.engine import load_engine  # noqa: E402

KERNELS = Path(__file__).parent / "kernels"
STRICT = ("-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="session")
def kernels() -> Callable[[str], Kernels]:
    """`kernels("products")`: the C functions of kernels/products.cu."""

    @functools.cache
    def build(name: str) -> Kernels:
        engine = load_engine()
        library = built_for_engine(KERNELS / f"{name}.cu", *STRICT, check=True)
        return Kernels(engine, ctypes.CDLL(str(library)))

    return build


@pytest.fixture(scope="session")
def printed(headers: Path) -> Callable[[str], Any]:
    """`printed("layouts")`: the JSON that the program kernels/layouts.cpp prints. It runs without an engine."""

    @functools.cache
    def run(name: str) -> Any:
        source = KERNELS / f"{name}.cpp"
        command = ["g++", "-std=c++17", "-O1", *STRICT, "-Wno-psabi", "-I", str(headers), str(source), "-o", name]
        program = built(name, [command], source, *KERNELS.glob("*.h"))
        return json.loads(subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout)

    return run
