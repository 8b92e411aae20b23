"""A Hopper kernel takes any size: what TMA cannot take goes to the same kernel without TMA, built when it is needed."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.shims import compiled
from tile2cu.choosing import family_of, fastest
from tile2cu.cli import main
from tile2cu.targets import SM90A
from tile2cu_runtime import LaunchError
from tile2cu_runtime.engine import load_engine

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((m, k)).astype(np.float16), random.standard_normal((k, n)).astype(np.float16)
    return a, b, np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0)


def test_a_pitch_that_tma_cannot_take() -> None:
    kernel = tile2cu.load(EXAMPLES / "gemm_relu.py", target="cuda:sm_90a", device="cpu")
    for m, n, k in ((33, 64, 64), (33, 65, 64), (1, 7, 33), (33, 64, 64)):
        a, b, expected = operands(m, n, k)
        np.testing.assert_allclose(kernel(a, b).astype(np.float32), expected, atol=2e-2, rtol=2e-2)
    assert kernel.manifest.target == "cuda:sm_90a"


@pytest.mark.nightly
def test_outputs_that_the_caller_passes_and_checks() -> None:
    kernel = tile2cu.load(EXAMPLES / "gemm_relu.py", target="cuda:sm_90a", check=True)
    a, b, expected = operands(20, 65, 40)
    c = np.empty((20, 65), np.float16)
    assert kernel(a, b, c) is None
    np.testing.assert_allclose(c.astype(np.float32), expected, atol=2e-2, rtol=2e-2)
    assert kernel.report is not None and not kernel.report.findings


def test_a_kernel_that_has_no_other_form_states_why() -> None:
    kernel = tile2cu.load(EXAMPLES / "gemm_cluster.py", target="cuda:sm_90a", device="cpu")
    a, b, _ = operands(20, 65, 40)
    with pytest.raises(LaunchError, match="TL_NOT_SUPPORTED") as caught:
        kernel(a, b)
    assert isinstance(caught.value.__cause__, tile2cu.Error)


@pytest.mark.nightly  # a family's tiles are chosen below
def test_tiles_by_the_sizes_of_each_call() -> None:
    kernel = tile2cu.load(EXAMPLES / "gemm_relu.py", target="cuda:sm_90a", device="cpu", tiles="auto")
    for m, n, k in ((1, 256, 256), (1, 256, 256), (300, 256, 256), (16, 65, 64)):
        a, b, expected = operands(m, n, k)
        np.testing.assert_allclose(kernel(a, b).astype(np.float32), expected, atol=5e-2, rtol=2e-2)
    assert set(kernel.choices) == {(1, 256, 256), (300, 256, 256), (16, 65, 64)}
    assert len(kernel.kernels) <= 4
    assert kernel.kernel_for(M=1, N=256, K=256) is kernel.kernel_for(M=1, N=256, K=256)


def test_a_vendored_pair_under_one_launcher(gxx: str, tmp_path: Path) -> None:
    assert main([str(EXAMPLES / "gemm_relu.py"), "--target", "cuda:sm_90a", "--any-size", "-o", str(tmp_path)]) == 0
    dispatch = (tmp_path / "gemm_relu_dispatch.cpp").read_text(encoding="utf-8")
    assert "Sizes: K and N in multiples of 8, for TMA; others are for the entries below." in dispatch
    sources = sorted(path for path in tmp_path.iterdir() if path.suffix in (".cu", ".cpp"))
    objects = [compiled(gxx, source) for source in sources]
    link = [gxx, "-shared", *objects, str(load_engine().path), "-o", "gemm.so"]
    subprocess.run(link, cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "gemm.so"))
    library.gemm_relu_choice.restype = ctypes.c_char_p
    for (m, n, k), name in {(33, 64, 64): b"tma", (33, 65, 64): b"any", (1, 7, 33): b"any"}.items():
        a, b, expected = operands(m, n, k)
        c = np.empty((m, n), np.float16)
        addresses = [ctypes.c_void_p(each.ctypes.data) for each in (a, b, c)]
        assert library.gemm_relu_choice(m, n, k, -1) == name
        assert library.gemm_relu(*addresses, m, n, k, None, 0, None) == 0
        np.testing.assert_allclose(c.astype(np.float32), expected, atol=2e-2, rtol=2e-2)


def test_a_target_without_tma_has_one_kernel(tmp_path: Path) -> None:
    assert main([str(EXAMPLES / "gemm_relu.py"), "--any-size", "-o", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gemm_relu.cu", "gemm_relu.h", "gemm_relu.json"]


def test_a_family_by_the_sizes_of_each_call() -> None:
    family = ["gemm_few_rows.py"]
    kernel = tile2cu.load(EXAMPLES / "gemm_relu.py", target="cuda:sm_90a", device="cpu", tiles="auto", family=family)
    for m, n, k in ((1, 1024, 512), (100, 128, 128)):
        a, b, expected = operands(m, n, k)
        np.testing.assert_allclose(kernel(a, b).astype(np.float32), expected, atol=5e-2, rtol=2e-2)
    members = family_of(EXAMPLES / "gemm_relu.py", None, SM90A, {"M": 1, "N": 1024, "K": 512}, family)
    bound = tile2cu.load(
        EXAMPLES / "gemm_relu.py", target="cuda:sm_90a", device="cpu", family=family, M=1, N=1024, K=512
    )
    a, b, expected = operands(1, 1024, 512)
    np.testing.assert_allclose(bound(a, b).astype(np.float32), expected, atol=5e-2, rtol=2e-2)
    assert bound.manifest.kernel == ("gemm_relu", "gemm_few_rows")[fastest(members, {})[0]]
