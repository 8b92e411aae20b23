"""The engine's sources and the host primitives compile cleanly."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]


@pytest.mark.parametrize("folder", ["host", "host/sm90", "host/cdna"])
def test_each_host_header_stands_alone(gxx: str, headers: Path, folder: str, tmp_path: Path) -> None:
    names = sorted(path.name for path in (headers / "tl" / folder).glob("*.h"))
    sources = []
    for name in names:
        sources.append(tmp_path / f"{name}.cpp")
        sources[-1].write_text(f"#include <tl/{folder}/{name}>\n#include <tl/{folder}/{name}>\n", encoding="utf-8")
    subprocess.run([gxx, *STRICT, "-I", str(headers), *map(str, sources)], check=True)


def test_engine_header_is_plain_c(gxx: str, headers: Path, tmp_path: Path) -> None:
    source = tmp_path / "engine.c"
    source.write_text("#include <tl/host/engine.h>\n", encoding="utf-8")
    command = [gxx, "-x", "c", "-std=c99", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", str(headers)]
    subprocess.run([*command, str(source)], check=True)


@pytest.mark.parametrize("flags", [[], ["-DTILE2CU_PORTABLE_FIBERS"]], ids=["assembly", "ucontext"])
def test_fibers_switch(gxx: str, root: Path, tmp_path: Path, flags: list[str]) -> None:
    engine, program = root / "runtime" / "tile2cu_runtime" / "engine", tmp_path / "fibers"
    sources = [str(Path(__file__).with_name("fibers.cpp")), str(engine / "fiber.cpp")]
    command = [gxx, "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", *flags, "-I", str(engine), *sources]
    subprocess.run([*command, "-o", str(program)], check=True)
    subprocess.run([program], check=True)
