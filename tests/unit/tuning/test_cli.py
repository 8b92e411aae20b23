"""`tile2cu tune` and `--auto` on the command line, without a GPU."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.chooser.kernels import EXAMPLES
from tests.unit.tuning.machine import Machine
from tile2cu.cli import main, tune


def us_of(setting: Mapping[str, int]) -> float:
    return 1000.0 / (setting["block_N"] + setting["num_stages"])


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of an example, and a fake GPU."""
    monkeypatch.setattr(tune, "_on_gpu", lambda options, given, default, sizes: Machine(us_of))
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copy(EXAMPLES / "gemm_relu.py", tmp_path / "gemm_relu.py"))


SIZES = ["--target", "cuda:sm_90a", "--size", "M=16,1024", "--size", "N=4096", "--size", "K=4096"]


def test_results_and_a_dispatch(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", str(kernel), *SIZES, "--dispatch", "pyproject.toml"]) == 0
    out = capsys.readouterr().out
    assert "K = 4096, M = 16, N = 4096: block_M = " in out and "x the file's own (measured)" in out
    content = json.loads((kernel.parent / "gemm_relu.tune.json").read_text(encoding="utf-8"))
    assert [entry["sizes"]["M"] for entry in content["entries"]] == [16, 1024]
    project = (kernel.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert project.startswith("# tile2cu tune: begin gemm_relu_tuned\n[[tool.tile2cu.dispatch]]")
    assert main(["tune", str(kernel), *SIZES, "--dispatch", "pyproject.toml"]) == 0  # once more: nothing is added
    assert (kernel.parent / "pyproject.toml").read_text(encoding="utf-8") == project


def test_auto_takes_what_was_measured(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", str(kernel), *SIZES]) == 0
    capsys.readouterr()
    auto = ["--target", "cuda:sm_90a", "--auto", "-D", "M=16", "-D", "N=4096", "-D", "K=4096", "-o", "-"]
    assert main([str(kernel), *auto]) == 0
    head = " ".join(line.strip("/ ") for line in capsys.readouterr().out.splitlines()[:20])
    assert "us measured on Fake GPU, fastest of " in head
    assert "[schedule.tiles.measured]" in head


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "M=16"], "N, K have no values to tune for"),
        (["--size", "M=a"], "`--size M=a` is not of the form NAME=NUMBER,..."),
        (["--size", "X=1"], "`--size X`: the kernel has no such run-time size"),
        ([*SIZES[2:], "--limit", "1"], "`--limit 1` leaves nothing to compare"),
    ],
)
def test_wrong_calls(kernel: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert main(["tune", str(kernel), "--target", "cuda:sm_90a", *words]) == 1
    assert message in capsys.readouterr().err
