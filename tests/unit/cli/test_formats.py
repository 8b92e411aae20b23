"""`--format` of every verb: the diagnostics, and nothing else, on the standard output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tile2cu.cli import FORM_NAMES, VERBS, main
from tile2cu.cli.diagnostics import FORMATS

WRONG = (
    "import tilelang.language as T\n\n@T.prim_func\ndef f(X: T.Tensor((4,), 'float33')):\n    with T.Kernel(1): pass\n"
)
RIGHT = """\
import tilelang.language as T

@T.prim_func
def f(X: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            X[i] = 1.0
"""
PROJECT = '[tool.tile2cu]\noutput = "out"\n[[tool.tile2cu.kernels]]\nfile = "f.py"\ntargets = ["cuda:sm_80"]\n'
# How each verb is called; what is left out has no kernel to fail for.
CALLS = {
    "emit": ["f.py", "-o", "out"],
    "explain": ["f.py"],
    "build": [],
    "run": ["f.py"],
    "bench": ["f.py"],
    "review": ["f.py", "-o", "page.html"],
    "layout": ["f.py", "--tile", "X"],
    "resources": ["f.py"],
    "check": [],
    "update": [],
    "vendor": ["-o", "vendored"],
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_verb_is_called_below() -> None:
    assert {*VERBS} - {*CALLS} == {"completion", "map", "migrate", "tune"}


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize("form", ["json", "sarif", "github"])
def test_an_error_is_one_document(verb: str, form: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "f.py").write_text(WRONG, encoding="utf-8")
    assert main([verb, *CALLS[verb], "--format", form]) != 0
    out = capsys.readouterr().out
    if form == "github":
        assert out.startswith("::error file=f.py,line=4,") and "T2C-" in out
    elif form == "json":
        (error,) = json.loads(out)["errors"]
        assert error["code"].startswith("T2C-F") and (error["path"], error["line"]) == ("f.py", 4)
    else:
        (result,) = json.loads(out)["runs"][0]["results"]
        assert (result["level"], result["ruleId"][:5]) == ("error", "T2C-F")


@pytest.mark.parametrize("verb", ["explain", "layout", "update", "vendor"])
def test_what_a_verb_prints_itself_is_no_part_of_the_document(
    verb: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "f.py").write_text(RIGHT, encoding="utf-8")
    call = ["f.py"] if verb == "layout" else CALLS[verb]
    assert main([verb, *call, "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["errors"] == []
    assert captured.err or verb == "layout"


def test_errors_of_the_runtime_are_diagnostics(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "f.json").write_text("{}", encoding="utf-8")
    assert main(["run", "f.json", "--format", "json"]) == 1
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["code"].startswith("T2C-R0")


def test_the_names_of_forms_are_those_of_all_forms() -> None:
    """The command line has them without importing the forms."""
    assert tuple(sorted(FORMATS)) == FORM_NAMES
