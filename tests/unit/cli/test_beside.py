"""Files beside a kernel, its test and its shims: stale, edited by hand, merged, and left behind."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.test_check import KERNEL, PROJECT, checked
from tile2cu.cli import main

BESIDE = 'with-test = true\nshims = ["torch", "tvm-ffi"]\n'
FILES = ("gen/scale_test.cpp", "gen/scale_torch.cpp", "gen/scale_tvm_ffi.cpp")
MINE = "// ours\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scale.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(PROJECT + BESIDE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 0
    return tmp_path


def edit(path: Path) -> str:
    """The text with a comment of ours before its includes."""
    text = path.read_text(encoding="utf-8").replace('#include "scale.h"\n', MINE + '#include "scale.h"\n')
    assert MINE in text
    path.write_text(text, encoding="utf-8")
    return text


def states(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, str]:
    """The state of each file that a check names."""
    _, out = checked(capsys, "--format", "json", *options)
    return {each["path"]: each["state"] for each in json.loads(out)["differences"]}


def test_a_change_of_the_source_makes_them_stale(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert states(capsys) == {}
    (project / "scale.py").write_text(KERNEL.replace("2.0", "3.0"), encoding="utf-8")
    found = states(capsys)
    assert {file: found[file] for file in FILES} == dict.fromkeys(FILES, "stale")
    assert main(["build"]) == 0 and states(capsys) == {}


@pytest.mark.parametrize("file", FILES)
def test_an_edit_is_told_from_a_stale_file(project: Path, capsys: pytest.CaptureFixture[str], file: str) -> None:
    mine = edit(project / file)
    assert states(capsys) == {file: "edited"}
    assert checked(capsys, "--allow-edited") == (0, "")
    (project / "scale.py").write_text(KERNEL.replace("2.0", "3.0"), encoding="utf-8")
    found = states(capsys, "--allow-edited")
    assert found.pop(file) == "edited and stale" and set(found.values()) == {"stale"}
    assert main(["build"]) != 0 and (project / file).read_text(encoding="utf-8") == mine


@pytest.mark.parametrize("file", FILES)
def test_an_edit_is_merged(project: Path, capsys: pytest.CaptureFixture[str], file: str) -> None:
    edit(project / file)
    (project / "scale.py").write_text(KERNEL.replace("2.0", "3.0"), encoding="utf-8")
    assert main(["update"]) == 0
    assert MINE in (project / file).read_text(encoding="utf-8")
    assert states(capsys) == {file: "edited"}


def test_a_shim_that_is_wanted_no_more_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text(PROJECT + 'with-test = true\nshims = ["torch"]\n', encoding="utf-8")
    assert states(capsys)["gen/scale_tvm_ffi.cpp"] == "unlisted"
    assert main(["build"]) == 0
    assert (project / "gen/scale_tvm_ffi.cpp").exists() and states(capsys) == {"gen/scale_tvm_ffi.cpp": "unlisted"}
    (project / "gen/scale_tvm_ffi.cpp").unlink()
    assert states(capsys) == {}
