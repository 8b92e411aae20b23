"""--line=python: what a compiler says of an emitted text names the line of the Python file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tile2cu.cli import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("compiler", ["gxx", "nvcc"])
def test_an_error_names_the_python_line(compiler: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path: str = request.getfixturevalue(compiler)
    example = ROOT / "examples" / "vector_add.py"
    assert main([str(example), "-o", str(tmp_path), "--line", "python"]) == 0
    text = tmp_path / "vector_add.cu"
    body = text.read_text(encoding="utf-8")
    assert body.count(" + B(") == 1
    text.write_text(body.replace(" + B(", " + no_such_name + B("), encoding="utf-8")
    lines = example.read_text(encoding="utf-8").splitlines()
    python = next(number for number, line in enumerate(lines, 1) if "] + B[" in line)
    language = ["-x", "c++"] if compiler == "gxx" else ["-gencode=arch=compute_80,code=sm_80"]
    command = [path, *language, "-std=c++17", f"-I{ROOT / 'headers'}", "-c", str(text), "-o", str(tmp_path / "k.o")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    wanted = f"vector_add.py:{python}:" if compiler == "gxx" else f"vector_add.py({python}): error:"
    assert wanted in done.stderr.replace(f"{tmp_path}/", "") + done.stdout
