"""Kernels that other libraries call on a GPU: cuda.core, JAX, and torch.compile with Inductor."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tile2cu.api import emit_text
from tile2cu.core.origin import EmitOptions
from tile2cu.targets import find
from tile2cu_runtime.compile import gencode
from tile2cu_runtime.compilers import find_nvcc
from tile2cu_runtime.device import compute_capability
from tile2cu_runtime.paths import headers_dir

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_cuda_core() -> None:
    pytest.importorskip("cuda.core")
    spec = importlib.util.spec_from_file_location("cuda_core", EXAMPLES / "interop" / "cuda_core.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() == 0


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_jax(target: str, tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    capability = compute_capability()
    if capability is None or target == "cuda:sm_90a" and capability != (9, 0) or jax.default_backend() != "gpu":
        pytest.skip("needs JAX for CUDA, and a GPU of the target")
    options = EmitOptions(shims=("jax",))
    (one,) = emit_text(EXAMPLES / "linear_int4.py", kernel=None, target=find(target), bindings={}, options=options)
    for name, text in one.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    flags = [
        *gencode(target.partition(":")[2], capability[0] * 10 + capability[1]),
        "-std=c++17",
        "-Xcompiler",
        "-fPIC",
    ]
    command = [find_nvcc().path, *flags, "-shared", "-I", str(headers_dir()), "-isystem", jax.ffi.include_dir()]
    sources = ["linear_int4.cu", "linear_int4_jax.cpp"]
    subprocess.run([*command, *sources, "-o", "shim.so"], cwd=tmp_path, check=True)
    own = "linear_int4_" + target.partition("_")[2]
    function = ctypes.CDLL(str(tmp_path / "shim.so")).linear_int4_jax
    jax.ffi.register_ffi_target(own, jax.ffi.pycapsule(function), platform="CUDA")
    rng = np.random.default_rng(0)
    x, w = rng.integers(-2, 3, (5, 64)).astype(np.float16), rng.integers(0, 256, (16, 32)).astype(np.uint8)
    nibbles = np.stack([w & 15, w >> 4], axis=-1).reshape(16, 64).astype(np.float64)
    call = jax.ffi.ffi_call(own, jax.ShapeDtypeStruct((5, 16), np.float16))
    found = jax.jit(call)(x, w, np.ones((16, 2), np.float16))
    np.testing.assert_array_equal(np.asarray(found), (x @ (nibbles - 8).T).astype(np.float16))


def test_torch_compile_and_a_graph() -> None:
    import torch

    kernel = tile2cu.load(EXAMPLES / "gemm_relu.py", target="auto")
    operator = kernel.as_torch_op("tile2cu_tests::gemm_relu_gpu")
    compiled = torch.compile(lambda a, b: operator(a * 2, b) + 1, fullgraph=True, dynamic=True)
    for rows in (128, 200):
        a, b = (torch.randn(shape, device="cuda").half() / 8 for shape in ((rows, 64), (64, 128)))
        torch.testing.assert_close(compiled(a, b), torch.relu(a * 2 @ b) + 1, atol=2e-2, rtol=2e-2)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = operator(a, b)
    graph.replay()
    torch.testing.assert_close(c, torch.relu(a @ b), atol=2e-2, rtol=2e-2)
