"""Warnings on the command line: where they are printed, -Werror, and comments that silence them."""

import json
from pathlib import Path

import pytest

from tile2cu.cli import main

KERNEL = """\
import tilelang.language as T


def scale(N=1000, block=128):
    @T.prim_func
    def body(A: T.Tensor((N,), "float32")):
        with T.Kernel(N // block, threads=128) as bx:
            {above}
            print("a block")
            for i in T.Parallel(block):{comment}
                A[bx * block + i] = 1.0

    return body
"""
PROJECT = '[tool.tile2cu]\noutput = "gen"\n[[tool.tile2cu.kernels]]\nfile = "scale.py"\n'
NAMES = ("scale.cu", "scale.h", "scale.json")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    return tmp_path


def write(folder: Path, comment: str = "", above: str = "pass") -> None:
    (folder / "scale.py").write_text(KERNEL.format(comment=comment, above=above), encoding="utf-8")


def emitted(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["scale.py", "-o", "out", *options])
    return (status, *capsys.readouterr())


def test_warnings_are_on_the_standard_error_and_files_are_written(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = emitted(capsys)
    assert status == 0
    assert out.splitlines() == [f"out/{name}" for name in NAMES]
    assert err.startswith("warning[T2C-W005]: `print` has no effect in the kernel\n --> scale.py:9:13\n")
    assert "\n\nwarning[T2C-W002]: the last 104 of 1000 elements along dimension 0 of `A` are never accessed\n" in err
    assert err.count("warning[") == 2


def test_the_source_alone_is_printed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale.py", "-o", "-", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("//") and len(json.loads(err)["warnings"]) == 2


@pytest.mark.parametrize("verb", ["emit", "build", "check"])
def test_with_werror_nothing_is_written(verb: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    given = ["emit", "scale.py", "-o", "gen"] if verb == "emit" else [verb]
    assert main([*given, "-Werror"]) == (2 if verb == "check" else 1)
    err = capsys.readouterr().err
    assert err.startswith("error[T2C-W005]: ") and "= note: -Werror makes warnings errors\n" in err
    assert not (here / "gen").exists()


@pytest.mark.parametrize(
    ("comment", "above", "left"),
    [
        ("  # tile2cu: ignore[W002]", "pass", {"T2C-W005"}),
        ("  # tile2cu: ignore[W005, T2C-W002]", "pass", {"T2C-W005"}),  # which is about another line
        ("", "# tile2cu: ignore[W005]", {"T2C-W002"}),
        ("", "x = 1  # tile2cu: ignore[W005]", {"T2C-W002", "T2C-W005"}),
        ("", "# tile2cu: ignore[W002]", {"T2C-W002", "T2C-W005"}),
    ],
)
def test_a_comment_silences_what_it_names(
    comment: str, above: str, left: set[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here, comment, above)
    found = json.loads(emitted(capsys, "--format", "json")[1])
    assert {each["code"] for each in found["warnings"]} == left
    assert "// tile2cu: ignore[" not in (here / "out/scale.cu").read_text(encoding="utf-8")


def test_formats(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = emitted(capsys, "--format", "json")
    found = json.loads(out)
    assert not err and found["errors"] == []
    assert [(each["code"], each["path"], each["line"]) for each in found["warnings"]] == [
        ("T2C-W005", "scale.py", 9),
        ("T2C-W002", "scale.py", 10),
    ]
    run = json.loads(emitted(capsys, "--format", "sarif")[1])["runs"][0]
    assert [result["level"] for result in run["results"]] == ["warning", "warning"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["T2C-W002", "T2C-W005"]
    out = emitted(capsys, "--format", "github")[1]
    assert out.startswith("::warning file=scale.py,line=9,title=tile2cu%3A T2C-W005::`print` has no effect")


def test_every_build_and_every_check_shows_them(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    for verb in ("build", "build", "check"):
        assert main([verb]) == 0
        assert capsys.readouterr().err.count("warning[") == 2
    assert main(["check", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["same"] is True and len(found["warnings"]) == 2
