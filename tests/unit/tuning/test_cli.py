"""`tile2cu tune` and `--auto` on the command line, without a GPU."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.unit.chooser.kernels import EXAMPLES
from tests.unit.tuning.machine import FakeGpu
from tile2cu.cli import main, tune


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of an example, and a fake GPU."""
    monkeypatch.setattr(tune, "_device", FakeGpu)
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for name in ("gemm_few_rows.py", "gemm_clusters.py"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    return Path(shutil.copy(EXAMPLES / "gemm_relu.py", tmp_path / "gemm_relu.py"))


ONE = ["--target", "cuda:sm_90a", "--size", "M=16", "--size", "N=4096", "--size", "K=4096"]
SIZES = [word.replace("M=16", "M=16,1024") for word in ONE]


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
    assert main(["tune", str(kernel), *ONE]) == 0
    capsys.readouterr()
    auto = ["--target", "cuda:sm_90a", "--auto", "-D", "M=16", "-D", "N=4096", "-D", "K=4096", "-o", "-"]
    assert main([str(kernel), *auto]) == 0
    head = " ".join(line.strip("/ ") for line in capsys.readouterr().out.splitlines()[:20])
    assert "us measured on Fake GPU, fastest of " in head
    assert "[schedule.tiles.measured]" in head


def test_results_for_other_arguments_are_other_entries(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was measured for halves is none of bfloat16's, and a dispatch has the argument."""
    assert main(["tune", str(kernel), *ONE]) == 0
    assert main(["tune", str(kernel), *ONE, "-D", "dtype=bfloat16", "--dispatch", "-"]) == 0
    out = capsys.readouterr().out
    assert 'bindings = {dtype = "bfloat16", block_M = ' in out and 'bindings = {dtype = "bfloat16"}' in out
    entries = json.loads((kernel.parent / "gemm_relu.tune.json").read_text(encoding="utf-8"))["entries"]
    assert [each["bindings"] for each in entries] == [{"dtype": "bfloat16"}, {}]
    auto = ["--target", "cuda:sm_90a", "--auto", "-D", "M=16", "-D", "N=4096", "-D", "K=4096", "-o", "-"]
    for dtype, rule in (("float32", "[schedule.tiles.model]"), ("bfloat16", "[schedule.tiles.measured]")):
        assert main([str(kernel), *auto, "-D", f"dtype={dtype}"]) == 0
        assert rule in capsys.readouterr().out


def test_without_a_gpu_there_is_nothing_to_measure(
    kernel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tile2cu.tuning.on_gpu import Gpu

    monkeypatch.setattr(tune, "_device", Gpu)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["tune", str(kernel), *SIZES]) == 1
    assert "times are taken by torch, which is not installed" in capsys.readouterr().err
    assert not (kernel.parent / "gemm_relu.tune.json").exists()


@pytest.mark.nightly
def test_the_result_names_the_file_of_a_family_and_auto_takes_it(
    kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """gemm_few_rows is fastest on this machine where the model finds it worth a try."""
    family = ["--family", "gemm_few_rows.py", "--family", "gemm_clusters.py"]
    assert main(["tune", str(kernel), *ONE, *family, "--dispatch", "-"]) == 0
    out = capsys.readouterr().out
    assert "K = 4096, M = 16, N = 4096: gemm_few_rows.py: splits = " in out
    assert 'file = "gemm_few_rows.py", kernel = "gemm_few_rows"' in out
    entries = json.loads((kernel.parent / "gemm_relu.tune.json").read_text(encoding="utf-8"))["entries"]
    (few_rows,) = [entry for entry in entries if entry["sizes"]["M"] == 16]
    assert few_rows["file"] == "gemm_few_rows.py"
    assert sorted(few_rows["family"]) == ["gemm_clusters.py", "gemm_few_rows.py"]
    measured = {figure["file"] for figure in few_rows["figures"]}
    assert measured == {"gemm_relu.py", "gemm_clusters.py", "gemm_few_rows.py"}
    auto = ["--target", "cuda:sm_90a", "--auto", "-D", "M=16", "-D", "N=4096", "-D", "K=4096", "-o", "-"]
    assert main([str(kernel), *auto, *family]) == 0
    head = " ".join(line.strip("/ ") for line in capsys.readouterr().out.splitlines()[:20])
    assert "gemm_few_rows.py" in head and "us measured on Fake GPU, fastest of " in head
    assert main([str(kernel), *auto]) == 0  # alone it takes the best of its own settings
    head = " ".join(line.strip("/ ") for line in capsys.readouterr().out.splitlines()[:20])
    assert "gemm_few_rows.py" not in head and "us measured on Fake GPU, fastest of " in head


@pytest.mark.nightly
def test_a_changed_file_of_the_family_is_not_believed(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    family = ["--family", "gemm_few_rows.py"]
    assert main(["tune", str(kernel), *ONE, *family]) == 0
    other = kernel.parent / "gemm_few_rows.py"
    other.write_text(other.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    auto = ["--target", "cuda:sm_90a", "--auto", "-D", "M=16", "-D", "N=4096", "-D", "K=4096", "-o", "-"]
    capsys.readouterr()
    assert main([str(kernel), *auto, *family]) == 0
    assert " from gemm_relu.py " in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "M=16"], "N, K have no values to tune for"),
        (["--size", "M=a"], "`--size M=a` is not of the form NAME=NUMBER,..."),
        (["--size", "X=1"], "`--size X`: the kernel has no such run-time size"),
        ([*SIZES[2:], "--limit", "1"], "`--limit 1` leaves nothing to compare"),
        ([*SIZES[2:], "--gpus", "0"], "`--gpus 0` is no number of GPUs"),
    ],
)
def test_wrong_calls(kernel: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert main(["tune", str(kernel), "--target", "cuda:sm_90a", *words]) == 1
    assert message in capsys.readouterr().err
