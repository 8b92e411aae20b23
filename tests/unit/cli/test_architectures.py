"""A kernel for several targets of one language: a C function for each, and one that chooses by the device."""

import json
from pathlib import Path

import pytest

from tile2cu.cli import main

KERNEL = """\
import tilelang.language as T


def scale(N, block=128):
    @T.prim_func
    def body(A: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] = A[bx * block + i] * 2.0

    return body
"""
PROJECT = """\
[tool.tile2cu]
output = "generated"
targets = ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"]

[[tool.tile2cu.kernels]]
file = "scale.py"
specialisations = { small = { N = 1024 } }
"""
OF_TWO = sorted(
    [
        *(f"scale_dispatch.{end}" for end in ("cpp", "h", "json")),
        *(f"scale_{chip}.{end}" for chip in ("sm_80", "sm_89") for end in ("cu", "h", "json")),
    ]
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scale.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_targets_of_one_language_are_one_function(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build"]) == 0
    said = capsys.readouterr()
    note = "note: `scale` launches scale_sm_90a or scale_sm_80, by the device's architecture: "
    assert f"{note}generated/cuda/scale_dispatch.cpp" in said.err
    assert sorted(path.name for path in (project / "generated/hip").glob("*.*")) == [
        "scale.h",
        "scale.hip",
        "scale.json",
    ]
    manifest = json.loads((project / "generated/cuda/scale_dispatch.json").read_text(encoding="utf-8"))
    assert manifest["dispatches"] == ["scale_sm_90a", "scale_sm_80"]
    assert main(["build"]) == main(["check"]) == main(["update"]) == 0
    assert capsys.readouterr().out == "", "nothing changed"
    path = project / "generated/cuda/scale_dispatch.cpp"
    path.write_text(path.read_text(encoding="utf-8") + "// mine\n", encoding="utf-8")
    assert main(["check"]) == 1
    assert "scale_dispatch.cpp: edited" in capsys.readouterr().out
    assert main(["vendor", "-o", "third"]) == 0
    lists = (project / "third/CMakeLists.txt").read_text(encoding="utf-8")
    chips = ("sm_80", "sm_90a")
    for name, folder in (("tile2cu_cuda", "cuda"), ("tile2cu_cuda_small", "cuda_small")):
        assert f"add_library({name}_scale_dispatch STATIC" in lists
        kernels = " ".join(f"tile2cu_kernels_{folder}_{chip}" for chip in chips)
        assert f"target_link_libraries({name}_scale_dispatch PUBLIC {kernels})" in lists


def test_several_targets_on_the_command_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_file = ["scale.py", "-o", "out", "--target", "cuda:sm_80,cuda:sm_89"]
    assert main(of_file) == 0
    said = capsys.readouterr()
    assert sorted(path.name for path in (project / "out").iterdir()) == OF_TWO
    assert "note: `scale` launches scale_sm_89 or scale_sm_80, by the device's architecture" in said.err
    assert main(["check", *of_file]) == 0
    assert main([*of_file[:-1], "cuda:sm_80,hip:gfx942"]) == 1
    assert "error[T2C-C003]: cuda:sm_80, hip:gfx942 are of several languages" in capsys.readouterr().err


def test_targets_without_a_common_fallback_are_one_function(project: Path) -> None:
    assert main(["scale.py", "-o", "out", "--target", "cuda:sm_90a,cuda:sm_100a"]) == 0
    text = (project / "out/scale_dispatch.cpp").read_text(encoding="utf-8")
    assert text.index("scale_sm_90a_supports") < text.index("scale_sm_100a_supports")
    assert "entries below" not in text.partition("// cuda:sm_100a")[2]
