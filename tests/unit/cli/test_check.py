"""tile2cu check: what differs, how it is said, and that nothing is written."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tile2cu.cli import main
from tile2cu.tool import this_tool

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
PROJECT = '[tool.tile2cu]\noutput = "gen"\n[[tool.tile2cu.kernels]]\nfile = "scale.py"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scale.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 0
    return tmp_path


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def checked(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """The exit status of a check that writes nothing, and what it printed."""
    capsys.readouterr()
    before = snapshot(Path.cwd())
    status = main(["check", *options])
    assert snapshot(Path.cwd()) == before
    return status, capsys.readouterr().out


def test_nothing_differs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys) == (0, "")


def test_a_changed_source_makes_its_files_stale(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "scale.py").write_text(KERNEL.replace("2.0", "3.0"), encoding="utf-8")
    status, out = checked(capsys)
    assert status == 1
    assert out.splitlines() == ["gen/scale.cu and 2 more: stale: scale.py has changed; run tile2cu build"]
    status, out = checked(capsys, "--diff")
    assert status == 1
    assert "-  tl::parallel" in out or "* 2.0f" in out and "* 3.0f" in out


def test_another_tool_makes_them_stale(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = type(this_tool())(version="0.1.0", sha256="0" * 64)
    monkeypatch.setattr("tile2cu.api.this_tool", lambda: other)
    status, out = checked(capsys)
    assert status == 1 and "stale: tile2cu has changed (it was 0.1.0)" in out


def test_a_missing_and_an_unlisted_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "gen/scale.h").unlink()
    text = (project / "gen/scale.json").read_text(encoding="utf-8")
    (project / "gen/old.json").write_text(text.replace('"kernel": "scale"', '"kernel": "old"'), encoding="utf-8")
    status, out = checked(capsys)
    assert status == 1
    assert out.splitlines() == [
        "gen/scale.h: missing: no such file; run tile2cu build",
        "gen/old.json: unlisted: no entry of [tool.tile2cu] emits this kernel; delete it, or list it in pyproject.toml",
    ]


def test_an_edit_by_hand_is_told_from_age(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "gen/scale.cu"
    path.write_text(path.read_text(encoding="utf-8").replace("2.0f", "2.5f"), encoding="utf-8")
    status, out = checked(capsys)
    assert status == 1 and out.startswith("gen/scale.cu: edited: not as it was emitted;")
    assert checked(capsys, "--allow-edited") == (0, "")
    (project / "scale.py").write_text(KERNEL.replace("2.0", "3.0"), encoding="utf-8")
    status, out = checked(capsys, "--allow-edited")
    assert status == 1 and out.startswith("gen/scale.cu: edited and stale: scale.py has changed;")


def test_github_names_file_and_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "gen/scale.cu"
    lines = path.read_text(encoding="utf-8").splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "2.0f" in line)
    path.write_text("\n".join(lines).replace("2.0f", "2.5f") + "\n", encoding="utf-8")
    status, out = checked(capsys, "--format", "github")
    assert status == 1
    assert out.startswith(f"::error file=gen/scale.cu,line={number},title=tile2cu%3A edited::not as it was emitted;")


def test_json_and_sarif_hold_the_same(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(checked(capsys, "--format", "json")[1])["same"] is True
    assert json.loads(checked(capsys, "--format", "sarif")[1])["runs"][0]["results"] == []
    (project / "scale.py").write_text(KERNEL.replace("2.0", "3.0"), encoding="utf-8")
    status, out = checked(capsys, "--format", "json", "--diff")
    found = json.loads(out)
    assert status == 1 and found["same"] is False
    assert [(each["path"], each["state"]) for each in found["differences"]] == [
        (f"gen/scale.{end}", "stale") for end in ("cu", "h", "json")
    ]
    assert found["differences"][0]["diff"].startswith("--- ")
    run = json.loads(checked(capsys, "--format", "sarif")[1])["runs"][0]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert [place["artifactLocation"]["uri"] for place in places] == [each["path"] for each in found["differences"]]
    assert {result["ruleId"] for result in run["results"]} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}


@pytest.mark.parametrize("below", [".", "folder"])
def test_git_applies_the_differences(
    below: str, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which("git"):
        pytest.skip("needs git")
    top = project / "repository"
    place = top / below
    place.mkdir(parents=True)
    for path in [*project.glob("*.py"), *project.glob("*.toml"), project / "gen"]:
        path.rename(place / path.name)
    monkeypatch.chdir(place)
    subprocess.run(["git", "init", "-q", top], check=True)
    source = (place / "scale.py").read_text(encoding="utf-8")
    (place / "scale.py").write_text(source.replace("* 2.0", "* 3.0"), encoding="utf-8")  # stale
    text = (place / "gen/scale.cu").read_text(encoding="utf-8")
    (place / "gen/scale.cu").write_text(text.rstrip("\n"), encoding="utf-8")  # without a newline at the end
    (place / "gen/scale.h").unlink()  # missing
    (place / "gen/other.cu").write_bytes((place / "gen/scale.cu").read_bytes())
    manifest = (place / "gen/scale.json").read_text(encoding="utf-8").replace('"scale.', '"other.')
    (place / "gen/other.json").write_text(manifest.replace('"kernel": "scale"', '"kernel": "other"'), encoding="utf-8")
    status, out = checked(capsys, "--diff")
    assert status == 1 and all(f": {state}: " in out for state in ("stale", "missing", "unlisted"))
    subprocess.run(["git", "apply", "-"], input=out, text=True, check=True)
    assert checked(capsys) == (0, "")


@pytest.mark.parametrize("spoil", ["source", "project", "crash"])
def test_a_check_that_cannot_tell_is_status_2(
    spoil: str, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if spoil == "source":
        (project / "scale.py").write_text("not Python at all (", encoding="utf-8")
    elif spoil == "project":
        (project / "pyproject.toml").write_text(PROJECT.replace("output", "ouput"), encoding="utf-8")
    else:
        monkeypatch.setattr("tile2cu.project.job.Job.emit", lambda job: 1 / 0)
    assert checked(capsys)[0] == 2


def test_a_single_file_is_checked_with_its_options(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["scale.py", "-o", "one", "-D", "N=4096"]
    assert main(call) == 0
    assert checked(capsys, *call) == (0, "")
    status, out = checked(capsys, *call[:-1], "N=8192")
    assert status == 1 and "stale: N is 8192 (it was 4096)" in out
    status, out = checked(capsys, *call, "--line", "python")
    assert status == 1 and "stale: the style or the format has changed" in out


def test_what_is_not_emitted_is_said_in_the_format_that_is_asked_for(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "scale.py").write_text(KERNEL.replace("* 2.0", "* T.coppy(2)"), encoding="utf-8")
    assert checked(capsys) == (2, "")
    status, out = checked(capsys, "--format", "json")
    assert status == 2
    found = json.loads(out)
    assert (found["same"], found["differences"]) == (False, [])
    assert found["errors"] == [
        {
            "code": "T2C-F010",
            "message": "T.coppy does not exist",
            "help": "did you mean `T.copy`?",
            "path": "scale.py",
            "line": 9,
        }
    ]
    run = json.loads(checked(capsys, "--format", "sarif")[1])["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["T2C-F010"]
    assert run["results"][0]["message"] == {"text": "T.coppy does not exist; did you mean `T.copy`?"}
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 9}
    status, out = checked(capsys, "--format", "github")
    assert out == (
        "::error file=scale.py,line=9,title=tile2cu%3A T2C-F010::T.coppy does not exist; did you mean `T.copy`?\n"
    )
    (project / "scale.py").unlink()
    assert json.loads(checked(capsys, "--format", "json")[1])["errors"][0]["code"] == "T2C-C001"
    assert checked(capsys, "--format", "github")[1].startswith("::error title=tile2cu%3A T2C-C001::cannot read")
