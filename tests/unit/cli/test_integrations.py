"""The pre-commit hook and the GitHub Action: their files say what those tools need, and their commands work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.test_check import KERNEL, PROJECT
from tile2cu.cli import main

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.whole_heads  # a process checks what this one has emitted


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built project, and a tile2cu on PATH that is this one."""
    (tmp_path / "scale.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    script = tmp_path / "bin" / "tile2cu"
    script.parent.mkdir()
    paths = f"{ROOT}/transpile:{ROOT}/runtime"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={paths} exec "{sys.executable}" -m tile2cu "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 0
    return tmp_path


def field(text: str, name: str) -> str:
    """The last one-line value of that name in a YAML text."""
    return [line.partition(f"{name}:")[2].strip() for line in text.splitlines() if line.strip().startswith(f"{name}:")][
        -1
    ]


def test_the_action_reports_a_stale_file(project: Path) -> None:
    command = field((ROOT / "action.yml").read_text(encoding="utf-8"), "run")
    environment = os.environ | {"PROJECT": ".", "ARGUMENTS": "--allow-edited --diff"}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-ec", command], env=environment, capture_output=True, text=True)

    assert run().returncode == 0
    (project / "scale.py").write_text(KERNEL.replace("2.0", "3.0"), encoding="utf-8")
    done = run()
    assert done.returncode == 1
    assert "::error file=gen/scale.cu,line=" in done.stdout


@pytest.mark.nightly
def test_the_hook_is_one_that_pre_commit_takes(project: Path) -> None:
    hooks = ROOT / ".pre-commit-hooks.yaml"
    assert subprocess.run(field(hooks.read_text(encoding="utf-8"), "entry").split()).returncode == 0
    client = pytest.importorskip("pre_commit.clientlib")
    (hook,) = client.load_manifest(str(hooks))
    assert hook["pass_filenames"] is False
