"""Calls like an earlier one are prepared as binding them would; whatever is new about them sends them to be bound."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tile2cu_runtime import Kernel, LaunchError, kernel
from tile2cu_runtime.arguments import bind_call
from tile2cu_runtime.engine import EngineOptions
from tile2cu_runtime.kernel import Run
from tile2cu_runtime.repeats import Repeats, _key
from tile2cu_runtime.spec import read_manifest

torch = pytest.importorskip("torch")
MANIFEST = read_manifest(Path(__file__).parents[3] / "emitted/cuda/sm_80/gemm_relu.json")


def halves(*shape: int) -> Any:
    return torch.zeros(shape, dtype=torch.float16)


@pytest.fixture
def repeats() -> Repeats:
    """Of a product of 16 x 24 by 24 x 32, with its output given and without."""
    found = Repeats(MANIFEST)
    for args in ((halves(16, 24), halves(24, 32)), (halves(16, 24), halves(24, 32), halves(16, 32))):
        found.remember(MANIFEST, args, bind_call(MANIFEST, "cpu", args, {}))
    return found


def test_a_call_with_its_output_is_prepared(repeats: Repeats) -> None:
    a, b, c = halves(16, 24), halves(24, 32), halves(16, 32)
    prepared = repeats.prepared((a, b, c))
    assert prepared is not None
    numbers = bind_call(MANIFEST, "cpu", (a, b, c), {}).numbers
    sizes = tuple(numbers[size.name] for size in MANIFEST.sizes)
    assert prepared.values == (a.data_ptr(), b.data_ptr(), c.data_ptr(), *sizes)
    assert prepared.result is None


def test_an_output_that_is_not_given_is_allocated(repeats: Repeats) -> None:
    prepared = repeats.prepared((halves(16, 24), halves(24, 32)))
    assert prepared is not None
    assert (prepared.result.shape, prepared.result.dtype) == ((16, 32), torch.float16)
    assert prepared.values[2] == prepared.result.data_ptr()


A, B, C = halves(16, 24), halves(24, 32), halves(16, 32)
OTHERS = {
    "another shape": (halves(8, 24), B, C),
    "another type": (A.float(), B, C),
    "not contiguous": (halves(24, 16).T, B, C),
    "misaligned": (halves(16 * 24 + 8)[1 : 16 * 24 + 1].view(16, 24), B, C),
    "overlapping": (A, B, B.view(-1)[:512].view(16, 32)),
    "a gradient": (A, B, halves(16, 32).requires_grad_()),
    "no tensor": (A, B, [0.0]),
    "too few": (A,),
    "none": (),
    "NumPy's": (A.numpy(), B, C),
}


@pytest.mark.parametrize("args", OTHERS.values(), ids=OTHERS.keys())
def test_whatever_is_new_is_bound(repeats: Repeats, args: tuple[Any, ...]) -> None:
    assert repeats.prepared(args) is None


def test_tensors_with_other_strides_are_not_alike() -> None:
    wide = halves(16, 64)
    assert _key((wide[:, :8],)) == _key((wide[:, 8:16],))
    assert _key((wide[:, :8],)) != _key((wide.view(8, 128).expand(2, 8, 128).reshape(16, 128)[:, :8],))


def test_what_may_change_is_not_remembered() -> None:
    repeats, args = Repeats(MANIFEST), (A, B, halves(16, 32).requires_grad_())
    with torch.no_grad():
        repeats.remember(MANIFEST, args, bind_call(MANIFEST, "cpu", args, {}))
    assert repeats.prepared(args) is None


class Launcher:
    """What a kernel's binding is to it: notes the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.status = 0

    def call(self, *values: Any) -> int:
        self.calls.append(values)
        return self.status

    def status_string(self, status: int) -> str:
        return f"status {status}"


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> tuple[Kernel, Launcher]:
    """A kernel for a GPU whose launches are noted, with tensors on the CPU."""
    found, launcher = object.__new__(Kernel), Launcher()
    found.manifest, found._module, found._repeats = MANIFEST, launcher, None
    found._run = Run(device="cuda", options=EngineOptions(), schedules=(), raise_findings=True)
    monkeypatch.setitem(kernel.TENSORS_ON, "cuda", "cpu")
    monkeypatch.setattr(kernel, "_gpu", lambda device: nullcontext(77))
    monkeypatch.setattr(kernel, "raw_stream", lambda: lambda gpu: 77)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    return found, launcher


def test_a_repeated_call_launches_what_the_first_did(
    launched: tuple[Kernel, Launcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    product, launcher = launched
    assert product(A, B, C) is None
    monkeypatch.setattr(kernel, "bind_call", None)
    assert product(A, B, C) is None
    assert launcher.calls[0] == launcher.calls[1]
    launcher.status = 2
    with pytest.raises(LaunchError):
        product(A, B, C)


def test_a_call_with_a_stream_is_bound(launched: tuple[Kernel, Launcher]) -> None:
    product, launcher = launched
    product(A, B, C)
    product(A, B, C, stream=5)
    assert [call[-1] for call in launcher.calls] == [77, 5]


def test_another_gpu_is_made_current(launched: tuple[Kernel, Launcher], monkeypatch: pytest.MonkeyPatch) -> None:
    product, launcher = launched
    product(A, B, C)
    monkeypatch.setattr(product, "_current_device", lambda: 1)
    assert product(A, B, C) is None
    assert len(launcher.calls) == 2
