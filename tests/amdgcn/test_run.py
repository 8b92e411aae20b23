"""`tile2cu run --device sim`: one text, one seed, and the CPU engine's answer."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.amdgcn.emitted import ROOT, portable
from tile2cu.cli import main
from tile2cu_runtime import paths
from tile2cu_runtime.resources import readable


@pytest.mark.parametrize(("name", "size", "tolerance"), [("vector_add", "N=3001", 0), ("row_softmax", "M=9", 1e-5)])
def test_simulator_and_engine_agree(name: str, size: str, tolerance: float, tmp_path: Path) -> None:
    manifest = portable(name, "hip:gfx942", tmp_path)
    found = {}
    for device in ("sim", "cpu"):
        saved = tmp_path / f"{device}.npz"
        assert main(["run", str(manifest), "--device", device, "--size", size, "--save", str(saved)]) == 0
        found[device] = dict(np.load(saved))
    assert found["sim"].keys() == found["cpu"].keys()
    for tensor in found["sim"]:
        np.testing.assert_allclose(found["sim"][tensor], found["cpu"][tensor], rtol=tolerance, atol=0)


@pytest.mark.nightly  # for each change: test_examples.py
def test_simulator_and_engine_agree_on_a_product(tmp_path: Path) -> None:
    """The emitted text for AMD, through its matrix cores: the two differ in the order of sums only."""
    example = str(ROOT / "examples" / "gemm_relu.py")
    sizes = ["--size", "M=51", "--size", "N=40", "--size", "K=45", "-D", "block_M=32", "-D", "block_N=32"]
    found = {}
    for device in ("sim", "cpu"):
        saved = tmp_path / f"{device}.npz"
        request = ["--target", "hip:gfx942", "--device", device, "--save", str(saved)]
        assert main(["run", example, *request, *sizes]) == 0
        found[device] = dict(np.load(saved))
    np.testing.assert_array_equal(found["sim"]["A"], found["cpu"]["A"])
    np.testing.assert_allclose(found["sim"]["C"], found["cpu"]["C"], rtol=2e-3, atol=1e-3)


def test_costs_are_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest, report = portable("vector_add", "hip:gfx942", tmp_path), tmp_path / "report.json"
    assert main(["run", str(manifest), "--device", "sim", "--size", "N=2048", "--stats", "--json", str(report)]) == 0
    (cost,) = json.loads(report.read_text(encoding="utf-8"))["costs"]
    assert cost["waves"] == 8 and cost["global_bytes"] == 3 * 4 * 2048
    assert cost["measured"]["global_lines"] >= 3 * 4 * 2048 // 64
    assert sum(cost["instructions"].values()) == sum(cost["kinds"].values()) == cost["wave_instructions"]
    assert "vector_add_impl::vector_add_kernel: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN4gemm6kernelILi1EEEvPKfi", "gemm::kernel<>"),
        ("_Z6kernelPf", "kernel"),
        ("gemm", "gemm"),
        ("_Z", "_Z"),
    ],
)
def test_symbols_are_spelled_as_in_the_text(symbol: str, name: str) -> None:
    assert readable(symbol) == name


@pytest.mark.nightly
def test_headers_that_were_installed_anew_are_precompiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation of the same release replaces files by equal ones, which clang takes for others."""
    original, place = paths.headers_dir(), tmp_path / "headers"
    monkeypatch.setattr(paths, "headers_dir", lambda: place)
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path / "cache"))
    for name, size in (("vector_add", "N=5"), ("row_softmax", "M=3")):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(original, place, copy_function=shutil.copy)  # with the time of now
        assert main(["run", str(portable(name, "hip:gfx942", tmp_path)), "--device", "sim", "--size", size]) == 0
