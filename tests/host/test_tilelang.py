"""Programs written for TileLang run with tile2cu.tilelang: unchanged by `python -m`, or with one import changed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tile2cu
from tests.host.tilelang_programs.forked import run
from tile2cu.core.errors import Tile2CuError
from tile2cu_runtime.errors import ArgumentError

PROGRAMS = Path(__file__).with_name("tilelang_programs") / "kernels"
pytestmark = pytest.mark.needs("g++", "torch")


@pytest.fixture(scope="module")
def factories() -> ModuleType:
    spec = importlib.util.spec_from_file_location("factories", PROGRAMS / "factories.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.nightly  # the same program fails in one below
def test_an_unchanged_program_runs_to_its_own_asserts() -> None:
    found = run("--device", "cpu", PROGRAMS / "eager.py", "--m", "64")
    assert found.returncode == 0, found.stderr
    assert "all checks passed" in found.stdout and "latency: " in found.stdout
    assert found.stderr.count('"tl.enable_fast_math" has no effect') == 1
    assert "says nothing about a GPU" in found.stderr


def test_the_command_is_a_module() -> None:
    command = [sys.executable, "-m", "tile2cu.tilelang", "--help"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0 and "python -m tile2cu.tilelang" in found.stdout, found.stderr


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("name", ["elementwise", "layouts", "rows", "splitk"])
def test_programs_run_on_the_cpu_engine(name: str) -> None:
    """Unmodified: factories, macros, dataclasses, tuning, atomics, profilers and layouts of the host."""
    found = run("--device", "cpu", PROGRAMS / f"{name}.py")
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1] == "all checks passed"


def test_a_program_that_fails_fails(tmp_path: Path) -> None:
    text = (
        (PROGRAMS / "eager.py")
        .read_text(encoding="utf-8")
        .replace("a.float() @ b.float()", "a.float() @ b.float() + 1")
    )
    (tmp_path / "wrong.py").write_text(text, encoding="utf-8")
    found = run("--device", "cpu", tmp_path / "wrong.py", "--m", "64")
    assert found.returncode == 1
    assert "AssertionError" in found.stderr


def test_a_diagnostic_points_into_the_program(tmp_path: Path) -> None:
    text = (PROGRAMS / "eager.py").read_text(encoding="utf-8").replace("T.clear(C_local)", "T.cleer(C_local)")
    (tmp_path / "wrong.py").write_text(text, encoding="utf-8")
    found = run("--device", "cpu", tmp_path / "wrong.py")
    assert found.returncode == 1
    assert "error[T2C-F010]" in found.stderr and "wrong.py:22" in found.stderr and "Traceback" not in found.stderr


def test_a_factory_s_kernel_has_the_program_s_values(factories: ModuleType) -> None:
    import torch

    kernel = factories.scaled(32, 8)
    a = torch.arange(256, dtype=torch.float32).reshape(32, 8)
    assert torch.equal(kernel(a), a * 3)
    assert kernel is factories.scaled(32, N=8) and kernel is not factories.scaled(32, 8, block=8)
    assert kernel.out_idx == [1]
    with pytest.raises(ArgumentError, match="shape"):
        kernel(torch.zeros(16, 8))


def test_types_are_arguments(factories: ModuleType) -> None:
    import torch

    from tile2cu.tilelang import language as T

    a = torch.ones(16, 8, dtype=torch.float16)
    assert factories.scaled(16, 8, dtype=T.float16)(a).dtype is torch.float16


def test_compile_takes_a_prim_func_of_a_plain_factory(factories: ModuleType) -> None:
    import torch

    from tile2cu import tilelang

    a = torch.arange(64, dtype=torch.float32)
    returned = tilelang.compile(factories.plain_factory(64), out_idx=-1)
    assert torch.equal(returned(a), 2 * a)
    in_place, b = tilelang.compile(factories.plain_factory(64)), torch.zeros_like(a)
    assert in_place(a, b) is None
    assert torch.equal(b, 2 * a)
    with pytest.raises(Tile2CuError, match="C031"):
        tilelang.compile(lambda: None)


def test_profiler(factories: ModuleType) -> None:
    profiler = factories.scaled(32, 8).get_profiler()
    profiler.assert_allclose(lambda a: a * 3)
    with pytest.raises(AssertionError, match="of 256 elements"):
        profiler.assert_allclose(lambda a: a * 4)
    profiler.assert_consistent(2)
    assert profiler.run_once().shape == (32, 8)
    assert profiler.do_bench() > 0


def test_a_tuner_takes_what_compiles(factories: ModuleType) -> None:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = factories.tuned(64)
        assert kernel.config == {"block": 16, "threads": 32} and kernel.latency is None
        assert factories.tuned(64) is kernel
        assert factories.tuned(64, block=8, threads=32) is not kernel
        result = factories.tuner(64).run(warmup=1, rep=1)
    a = torch.arange(64, dtype=torch.int32)
    assert torch.equal(kernel(a), a + 1)
    assert result.config == {"block": 32} and torch.equal(result.kernel(a), a - 1)
    assert "main_kernel" in result.libcode or "kernel" in result.libcode


def test_open_sizes_take_any_tensor(factories: ModuleType) -> None:
    import torch

    for count in (32, 77):
        a, b = torch.arange(count, dtype=torch.int32), torch.zeros(count, dtype=torch.int32)
        factories.dynamic(a, b)
        assert torch.equal(b, 5 * a)


def test_a_tensor_s_layout_with_sizes_that_are_constants(factories: ModuleType) -> None:
    """The coordinates in memory are quotients of quotients, each the same for the elements of a vector."""
    import torch

    a, b = torch.randn(32, 4, 8), torch.zeros(32, 4, 8, dtype=torch.float16)
    factories.permuted(32, 4, 8)(a, b)
    assert torch.equal(b, a.reshape(4, 32, 8).permute(1, 0, 2).half())


def test_a_tuner_takes_some_of_many_configurations(factories: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    from tile2cu.tilelang import autotuner

    configs = [{"block": index} for index in range(10)]
    assert autotuner._spread(configs) == configs
    monkeypatch.setenv("TILE2CU_TUNE_CONFIGS", "3")
    with pytest.warns(UserWarning, match="takes 3 of 10"):
        assert [each["block"] for each in autotuner._spread(configs)] == [0, 3, 6]


def test_load_takes_a_function(factories: ModuleType) -> None:
    import torch

    kernel = tile2cu.load(factories.scaled, M=16, N=8, check=True, device="cpu")
    a = torch.ones(16, 8)
    assert torch.equal(kernel(a), 3 * a)
    assert tile2cu.load(factories.plain_factory(64), device="cpu").manifest.kernel == "plain_factory"
    with pytest.raises(Tile2CuError, match="C030"):
        tile2cu.load(len)


def test_load_takes_a_function_of_a_notebook_s_cell() -> None:
    """A cell has no file: its text is in linecache, and other cells' names are the program's."""
    import linecache

    import torch

    import tile2cu.tilelang
    import tile2cu.tilelang.language

    text = (PROGRAMS / "factories.py").read_text(encoding="utf-8")
    cell = text[text.index("@tilelang.jit(out_idx=[-1]") : text.index("def plain_factory")]
    name = "/tmp/ipykernel_1/3.py"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    names: dict[str, Any] = {"tilelang": tile2cu.tilelang, "T": tile2cu.tilelang.language, "SCALE": 7}
    exec(compile(cell, name, "exec"), names)
    a = torch.ones(16, 8)
    assert torch.equal(names["scaled"](16, 8)(a), 7 * a)
    assert torch.equal(tile2cu.load(names["scaled"], M=16, N=8)(a), 7 * a)


def test_sources_and_resources(factories: ModuleType, tmp_path: Path) -> None:
    kernel = factories.scaled(32, 8)
    kernel.export_sources(str(tmp_path / "k.cu"), str(tmp_path / "k.h"))
    assert (tmp_path / "k.cu").read_text(encoding="utf-8") == kernel.get_kernel_source()
    assert 'extern "C"' in (tmp_path / "k.h").read_text(encoding="utf-8")
    kernel.export_library(str(tmp_path / "k.so"))
    assert (tmp_path / "k.so").stat().st_size > 0


@pytest.mark.nightly
@pytest.mark.needs("nvcc")
def test_ptx_and_registers(factories: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = factories.scaled(32, 8)
    kernel.show_ptx()
    assert ".entry" in capsys.readouterr().out
    assert 0 < kernel.n_regs <= 255 and kernel.n_spills == 0


def test_lower_writes_without_a_build(factories: ModuleType) -> None:
    from tile2cu import tilelang

    artifact = tilelang.lower(factories.plain_factory(64), target="cuda -arch=sm_90a")
    assert 'check_device("sm_90a"' in artifact.kernel_source and "plain_factory" in artifact.host_source


def test_plot_layout(factories: ModuleType, tmp_path: Path) -> None:
    from tile2cu.tilelang.tools import plot_layout

    found = plot_layout(tile2cu.load(PROGRAMS / "eager.py", device="cpu").layouts["C_local"], str(tmp_path), name="c")
    assert "<svg" in found.read_text(encoding="utf-8")
    with pytest.raises(Tile2CuError, match="C031"):
        plot_layout(object())
