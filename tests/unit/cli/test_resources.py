"""`tile2cu resources`: its report as text and JSON, and what it says where a tool is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tile2cu.cli import main
from tile2cu_runtime import compilers, hip

ROOT = Path(__file__).resolve().parents[3]
GEMM = str(ROOT / "examples" / "gemm_relu.py")
EMITTED = str(ROOT / "emitted" / "cuda" / "sm_80" / "gemm_relu.json")
VECTOR_ADD = str(ROOT / "examples" / "vector_add.py")
FMA = """\
import tilelang.language as T


def mm(M, N, K, rows=32, columns=4):
    @T.prim_func
    def body(A: T.Tensor((M, K), "float32"), B: T.Tensor((K, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(M, rows), threads=128) as (bx, by):
            a = T.alloc_shared((rows, 32), "float32")
            b = T.alloc_shared((32, columns), "float32")
            c = T.alloc_fragment((rows, columns), "float32")
            T.clear(c)
            for ko in T.serial(T.ceildiv(K, 32)):
                T.copy(A[by * rows, ko * 32], a)
                T.copy(B[ko * 32, bx * columns], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * rows, bx * columns])

    return body
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["resources", *arguments, "--json"]) == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


@pytest.mark.needs("nvcc", "nvdisasm")
def test_an_nvidia_kernel_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = [word for each in ("block_M=32", "block_N=32", "threads=32") for word in ("-D", each)]  # quick to compile
    assert main([GEMM, "-o", str(tmp_path), *small]) == 0
    capsys.readouterr()
    emitted = tmp_path / "gemm_relu.json"
    arguments = [str(emitted), "--size", "M=4096", "--size", "N=4096", "--size", "K=64"]
    found = report(capsys, *arguments)
    assert (found["kernel"], found["target"], found["warnings"]) == ("gemm_relu", "cuda:sm_80", [])
    assert sorted(each["kernel"] for each in found["kernels"]) == [
        "gemm_relu_impl::gemm_relu_kernel<Aligned<16>>",
        "gemm_relu_impl::gemm_relu_kernel<AnyAlignment>",
    ]
    manifest = json.loads(emitted.read_text(encoding="utf-8"))
    for each in found["kernels"]:
        assert each["threads"] == manifest["launch"]["threads"]
        assert each["shared_dynamic"] == manifest["launch"]["shared_bytes"]
        assert 32 <= each["registers"] <= 255
        assert (each["spill_store_bytes"], each["spilled_registers"]) == (0, 0)
        assert each["instructions"]["mma"] >= 1
        assert each["waves"]["blocks"] == 128 * 128
        assert each["occupancy"]["blocks_per_sm"] >= 1
    assert main(["resources", *arguments]) == 0
    text = capsys.readouterr().out
    assert "registers" in text and "waves" in text and "limited by" in text


@pytest.mark.nightly
@pytest.mark.needs("nvcc", "nvdisasm")
def test_an_mma_computed_by_fma_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mm.py").write_text(FMA, encoding="utf-8")
    found = report(capsys, str(tmp_path / "mm.py"))
    assert all("mma" not in each["instructions"] and each["waves"] is None for each in found["kernels"])
    (warning,) = found["warnings"]
    assert "the GEMM at mm.py:15 is computed by FMA" in warning


@pytest.mark.needs("amd")
def test_an_amd_kernel_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    small = [word for each in ("block_M=32", "block_N=32", "threads=64") for word in ("-D", each)]  # quick to compile
    arguments = [GEMM, "--target", "hip:gfx942", *small]
    found = report(capsys, *arguments)
    for each in found["kernels"]:
        assert each["registers"] % 8 == 0 and each["registers"] <= 512
        assert each["instructions"]["mfma"] >= 1
        assert each["occupancy"]["max_warps_per_sm"] == 32
    assert main(["resources", *arguments]) == 0
    text = capsys.readouterr().out
    assert re.search(r"workgroups? and \d+ of 32 waves per CU", text) and "  LDS  " in text
    assert not re.search(r"\b(blocks?|warps|SMs?|shared memory)\b", text)


@pytest.mark.needs("nvcc")
def test_without_nvdisasm_instructions_are_not_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nvcc = compilers.find_nvcc().path
    monkeypatch.setattr(compilers.shutil, "which", lambda name: None)
    monkeypatch.setattr(compilers, "_nvcc_candidates", lambda: iter([nvcc]))
    monkeypatch.setattr(compilers.os, "access", lambda path, mode: path == nvcc)
    found = report(capsys, VECTOR_ADD)
    assert all(each["registers"] and not each["instructions"] for each in found["kernels"])
    (warning,) = found["warnings"]
    assert "there is no nvdisasm" in warning and "pip install 'nvidia-cuda-nvdisasm" in warning


def test_a_missing_compiler_is_a_diagnostic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compilers, "_nvcc_candidates", lambda: iter(()))
    assert main(["resources", EMITTED]) == 1
    error = capsys.readouterr().err
    assert "error[T2C-R010]: nvcc not found" in error and "pip install" in error
    monkeypatch.setattr(hip.shutil, "which", lambda name: None)
    monkeypatch.setattr(hip, "_zig_folder", lambda: None)
    monkeypatch.delenv("TILE2CU_HIP_CLANG", raising=False)
    assert main(["resources", GEMM, "--target", "hip:gfx942"]) == 1
    error = capsys.readouterr().err
    assert "error[T2C-R010]: no clang for gfx942 found" in error and "apt-get install" in error


@pytest.mark.parametrize(
    ("size", "code"), [("M=1.5", "T2C-C002"), ("M", "T2C-C002"), ("M=many", "T2C-C002"), ("P=1", "T2C-R100")]
)
def test_a_wrong_size_is_an_error(size: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resources", EMITTED, "--size", size]) == 1
    assert code in capsys.readouterr().err
