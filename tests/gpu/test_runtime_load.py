"""Emitted texts on a GPU, loaded from Python: torch tensors, the current stream, the same bits as on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tile2cu_runtime import ArgumentError, Kernel, auto_target, load_kernel
from tile2cu_runtime.device import compute_capability

FIXTURES = Path(__file__).parents[1] / "host" / "fixtures"


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def vector_add() -> Kernel:
    return load_kernel(FIXTURES / "vector_add")


def test_a_gpu_is_the_default(vector_add: Kernel, torch: Any) -> None:
    assert vector_add.device == "cuda"
    assert compute_capability() == torch.cuda.get_device_capability()
    assert auto_target() == ("cuda:sm_90a" if compute_capability() == (9, 0) else "cuda:sm_80")


@pytest.mark.parametrize("count", [0, 1, 1000, 1024, 5003])
def test_outputs_are_allocated_on_the_gpu(vector_add: Kernel, torch: Any, count: int) -> None:
    a, b = torch.randn(count, device="cuda"), torch.randn(count, device="cuda")
    out = vector_add(a, b)
    assert out.device == a.device and torch.equal(out, a + b)
    out.zero_()
    assert vector_add(a, b, out) is None and torch.equal(out, a + b)


def test_the_cpu_engine_gives_the_same(torch: Any) -> None:
    a = torch.randn(3000).to(torch.bfloat16)
    on_cpu = load_kernel(FIXTURES / "reverse", device="cpu")(a)
    on_gpu = load_kernel(FIXTURES / "reverse", device="cuda")(a.cuda())
    assert torch.equal(on_cpu, on_gpu.cpu())


def test_launches_on_the_current_stream(vector_add: Kernel, torch: Any) -> None:
    """A graph captures what is launched on its stream, and nothing else."""
    a, b, out = (torch.full((4096,), value, device="cuda") for value in (1.0, 2.0, 0.0))
    vector_add(a, b, out)
    out.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        vector_add(a, b, out)
    assert out.sum() == 0
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, a + b)


def test_a_workspace_is_provided_and_captured(torch: Any) -> None:
    kernel = load_kernel(FIXTURES / "total")
    a, out = torch.ones(70_000, device="cuda"), torch.zeros(1, device="cuda")
    kernel(a, out)
    assert out.item() == 70_000
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(a, out)
    a.fill_(2.0)
    graph.replay()
    torch.cuda.synchronize()
    assert out.item() == 140_000


def test_a_stream_can_be_given(vector_add: Kernel, torch: Any) -> None:
    a, b = torch.ones(4096, device="cuda"), torch.ones(4096, device="cuda")
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    for given in (stream, stream.cuda_stream):
        out = vector_add(a, b, stream=given)
        stream.synchronize()
        assert torch.equal(out, a + b)
    with pytest.raises(ArgumentError, match="must be a CUDA stream"):
        vector_add(a, b, stream="default")


def test_cpu_tensors_are_refused(vector_add: Kernel, torch: Any) -> None:
    with pytest.raises(ArgumentError, match="`A` is on cpu, and this kernel is loaded for cuda") as raised:
        vector_add(torch.ones(4), torch.ones(4))
    assert raised.value.code == "T2C-R108"
    with pytest.raises(ArgumentError, match="`B` is on cpu"):
        vector_add(torch.ones(4, device="cuda"), torch.ones(4))


def test_cuda_array_interface(vector_add: Kernel, torch: Any) -> None:
    cupy = pytest.importorskip("cupy")
    a = cupy.arange(2000, dtype="float32")
    out = vector_add(a, a.copy())
    assert torch.equal(out.cpu(), 2 * torch.arange(2000.0))
