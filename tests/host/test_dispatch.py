"""A dispatch on the CPU engine: which kernel takes a call, and that the result is right whichever it is."""

import ctypes
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.host.shims import compiled
from tile2cu import Dispatch, Entry, dispatch
from tile2cu.project.job import Job
from tile2cu_runtime.engine import load_engine

ROOT = Path(__file__).resolve().parents[2]
HOPPER = {"block_N": 64, "block_K": 64, "threads": 128, "block_M": 64}
GEMM = Dispatch(
    name="gemm",
    file="gemm_relu.py",
    entries=(
        Entry(name="tall", bindings={"block_M": 64, "block_N": 32, "N": 32}, when="M >= 64"),
        Entry(name="hopper", target="cuda:sm_90a", bindings=HOPPER, when="M * N > 4096"),
        Entry(name="any", bindings={"block_M": 64, "block_N": 64}),
    ),
)


def build(gxx: str, folder: Path, files: Mapping[str, str]) -> ctypes.CDLL:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    sources = sorted(path for path in folder.iterdir() if path.suffix in (".cu", ".cpp"))
    objects = [compiled(gxx, source) for source in sources]
    subprocess.run([gxx, "-shared", *objects, str(load_engine().path), "-o", "gemm.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "gemm.so"))


def test_the_first_kernel_that_supports_a_call_runs(gxx: str, tmp_path: Path) -> None:
    library = build(gxx, tmp_path, dispatch(GEMM, ROOT / "examples"))
    library.gemm_choice.restype = ctypes.c_char_p
    library.gemm_workspace_size.restype = ctypes.c_size_t
    calls = {(64, 8, 32): "tall", (63, 8, 32): "any", (80, 16, 64): "hopper", (80, 12, 64): "any", (5, 7, 9): "any"}
    rng = np.random.default_rng(0)
    for (m, k, n), name in calls.items():
        assert library.gemm_choice(m, n, k, -1) == name.encode()
        assert library.gemm_workspace_size(m, n, k) == 0
        a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
        c = np.full((m, n), np.nan, np.float16)
        status = library.gemm(*(ctypes.c_void_p(x.ctypes.data) for x in (a, b, c)), m, n, k, None, 0, None)
        assert status == library.gemm_supports(m, n, k, -1) == 0
        np.testing.assert_array_equal(c, np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0))
    assert library.gemm_supports(-1, 32, 8, -1) == 1  # TL_INVALID_SIZE, as the fallback says
    assert library.gemm_choice(64, 32, 8, 5) == b""


def test_two_architectures_are_in_one_binary_under_one_function(gxx: str, tmp_path: Path) -> None:
    bindings = {"block_M": 64, "block_N": 64, "threads": 128}
    file = ROOT / "examples/gemm_relu.py"
    job = Job(file=file, folder=tmp_path, target="cuda:sm_80, cuda:sm_90a", bindings=bindings)
    library = build(gxx, tmp_path, {name: text for one in job.emit() for name, text in one.files.items()})
    library.gemm_relu_choice.restype = ctypes.c_char_p
    m, n = 33, 64
    for k, chosen in ((64, b"sm_90a"), (12, b"sm_80")):  # TMA takes rows of whole 16 bytes
        a = np.arange(m * k).reshape(m, k).astype(np.float16) % 7 - 3
        b = np.arange(k * n).reshape(k, n).astype(np.float16) % 5 - 2
        expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
        assert library.gemm_relu_choice(m, n, k, -1) == chosen
        for function in (library.gemm_relu, library.gemm_relu_sm_80):
            c = np.full((m, n), np.nan, np.float16)
            assert function(*(ctypes.c_void_p(x.ctypes.data) for x in (a, b, c)), m, n, k, None, 0, None) == 0
            np.testing.assert_array_equal(c, expected)
