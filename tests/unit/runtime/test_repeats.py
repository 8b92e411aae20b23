"""Calls like an earlier one are launched as binding them would; whatever is new about them sends them to be bound.

In C++ and in Python alike: launchers are noted, with tensors on the CPU.
"""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

import pytest

from tile2cu_runtime import ArgumentError, Kernel, LaunchError, kernel
from tile2cu_runtime import repeats as module
from tile2cu_runtime.arguments import bind_call
from tile2cu_runtime.engine import EngineOptions
from tile2cu_runtime.kernel import Run
from tile2cu_runtime.repeats import Repeats, _key
from tile2cu_runtime.spec import read_manifest

pytestmark = pytest.mark.needs("torch")
torch: Any = None  # imported by a fixture: it takes a quarter of the time in which all tests are collected
A: Any = None
B: Any = None
C: Any = None
MANIFEST = read_manifest(Path(__file__).parents[3] / "emitted/cuda/sm_80/gemm_relu.json")


def halves(*shape: int) -> Any:
    return torch.zeros(shape, dtype=torch.float16)


@pytest.fixture(autouse=True, scope="module")
def with_torch() -> None:
    global torch, A, B, C
    import torch

    A, B, C = halves(16, 24), halves(24, 32), halves(16, 32)


class Launcher:
    """What a kernel's binding is to it: notes the calls, by Python's way in and by C++'s."""

    def __init__(self, words: int) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.status, self.words = 0, words
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint64), ctypes.c_void_p)
        self._native = function(lambda given, stream: self.call(*given[: self.words], stream or 0))
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.launch = capsule(ctypes.cast(self._native, ctypes.c_void_p), b"tile2cu.launch", None)

    def call(self, *values: Any) -> int:
        self.calls.append(values)
        return self.status

    def status_string(self, status: int) -> str:
        return f"status {status}"


class Failed(Exception):
    pass


def fail(status: int) -> None:
    raise Failed(status)


@pytest.fixture(params=["python", "native"])
def launcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    """Of a product, on a machine whose GPU is the CPU."""
    monkeypatch.setattr(module, "raw_stream", lambda: lambda gpu: 0)
    monkeypatch.setattr(module, "current_gpu", lambda: lambda: 0)
    found = Launcher(len(MANIFEST.arguments))
    if request.param == "python":
        del found.launch
    elif not hasattr(torch.Tensor, "__dlpack_c_exchange_api__") or module.native_module() is None:
        pytest.skip("needs torch 2.10, Python.h and g++")
    return found


@pytest.fixture
def repeats(launcher: Launcher) -> Repeats:
    """Of a product of 16 x 24 by 24 x 32, with its output given and without."""
    found = Repeats(MANIFEST, launcher, fail)
    assert (found.launch != found._launch) == hasattr(launcher, "launch")
    for args in ((halves(16, 24), halves(24, 32)), (halves(16, 24), halves(24, 32), halves(16, 32))):
        found.remember(MANIFEST, args, bind_call(MANIFEST, "cpu", args, {}))
    return found


def test_a_call_with_its_output_is_launched(repeats: Repeats, launcher: Launcher) -> None:
    a, b, c = halves(16, 24), halves(24, 32), halves(16, 32)
    assert repeats.launch(a, b, c) is None
    numbers = bind_call(MANIFEST, "cpu", (a, b, c), {}).numbers
    sizes = tuple(numbers[size.name] for size in MANIFEST.sizes)
    assert launcher.calls == [(a.data_ptr(), b.data_ptr(), c.data_ptr(), *sizes, 0)]


def test_an_output_that_is_not_given_is_allocated(repeats: Repeats, launcher: Launcher) -> None:
    result = repeats.launch(halves(16, 24), halves(24, 32))
    assert (result.shape, result.stride(), result.dtype) == ((16, 32), (32, 1), torch.float16)
    assert result.untyped_storage().nbytes() == 2 * 16 * 32
    assert launcher.calls[0][2] == result.data_ptr()
    assert repeats.launch(halves(16, 24), halves(24, 32)).data_ptr() != result.data_ptr()


def test_a_workspace_is_lent_for_the_launch(launcher: Launcher) -> None:
    """From C++; the binding allocates one where Python launches."""
    manifest = read_manifest(Path(__file__).parents[3] / "emitted/cuda/sm_80/gemm_splitk.json")
    launcher.workspace_bytes = lambda *given: 4 * sum(given)  # type: ignore[attr-defined]
    repeats = Repeats(manifest, launcher, fail)
    args = (halves(16, 24), halves(24, 32), halves(16, 32))
    repeats.remember(manifest, args, bind_call(manifest, "cpu", args, {}))
    launcher.words = len(manifest.arguments) + hasattr(launcher, "launch")
    assert repeats.launch(*args) is None
    addresses, sizes = tuple(t.data_ptr() for t in args), (16, 32, 24)
    call = launcher.calls[0]
    assert call[:6] == addresses + sizes and call[-1] == 0
    if hasattr(launcher, "launch"):
        (workspace,) = (known.workspace for known in repeats._known.values())
        assert workspace == 4 * sum(sizes)
        assert call[6] and call[6] % 16 == 0
        # It overlaps no tensor, and may begin where one ends.
        for tensor, first in zip(args, addresses, strict=True):
            assert call[6] + workspace <= first or first + tensor.numel() * tensor.element_size() <= call[6]


def test_what_the_launcher_answers_is_raised(repeats: Repeats, launcher: Launcher) -> None:
    launcher.status = 2
    with pytest.raises(Failed, match="2"):
        repeats.launch(A, B, C)
    with pytest.raises(Failed):
        repeats.launch(A, B)


OTHERS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "another shape": lambda: (halves(8, 24), B, C),
    "another type": lambda: (A.float(), B, C),
    "not contiguous": lambda: (halves(24, 16).T, B, C),
    "misaligned": lambda: (halves(16 * 24 + 8)[1 : 16 * 24 + 1].view(16, 24), B, C),
    "overlapping": lambda: (A, B, B.view(-1)[:512].view(16, 32)),
    "a gradient": lambda: (A, B, halves(16, 32).requires_grad_()),
    "lazily negated": lambda: (A, torch._neg_view(B), C),
    "no tensor": lambda: (A, B, [0.0]),
    "too few": lambda: (A,),
    "none": lambda: (),
    "NumPy's": lambda: (A.numpy(), B, C),
}


@pytest.mark.parametrize("args", OTHERS.values(), ids=OTHERS.keys())
def test_whatever_is_new_is_bound(repeats: Repeats, launcher: Launcher, args: Callable[[], tuple[Any, ...]]) -> None:
    assert repeats.launch(*args()) is NotImplemented
    assert not launcher.calls


def test_gaps_that_a_call_had_may_come_again(repeats: Repeats) -> None:
    column = halves(16, 1)
    strange = column.as_strided((16, 1), (1, 7))  # contiguous: no stride of one element matters
    for a in (column, strange):
        args = (a, halves(1, 32))
        assert repeats.launch(*args) is NotImplemented or a is strange
        repeats.remember(MANIFEST, args, bind_call(MANIFEST, "cpu", args, {}))
        assert repeats.launch(*args).shape == (16, 32)


def test_tensors_with_other_strides_are_not_alike() -> None:
    wide = halves(16, 64)
    assert _key((wide[:, :8],)) == _key((wide[:, 8:16],))
    assert _key((wide[:, :8],)) != _key((wide.view(8, 128).expand(2, 8, 128).reshape(16, 128)[:, :8],))


def test_what_may_change_is_not_remembered(launcher: Launcher) -> None:
    repeats, args = Repeats(MANIFEST, launcher, fail), (A, B, halves(16, 32).requires_grad_())
    with torch.no_grad():
        repeats.remember(MANIFEST, args, bind_call(MANIFEST, "cpu", args, {}))
    assert repeats.launch(*args) is NotImplemented


def test_the_oldest_kinds_are_forgotten(launcher: Launcher) -> None:
    repeats = Repeats(MANIFEST, launcher, fail)
    for rows in range(1, 300):
        args = (halves(rows, 24), halves(24, 32))
        repeats.remember(MANIFEST, args, bind_call(MANIFEST, "cpu", args, {}))
    assert repeats.launch(halves(1, 24), halves(24, 32)) is NotImplemented
    assert repeats.launch(halves(299, 24), halves(24, 32)).shape == (299, 32)


def test_bytes_and_smaller_integers_are_not_alike(monkeypatch: pytest.MonkeyPatch, launcher: Launcher) -> None:
    manifest = read_manifest(Path(__file__).parents[3] / "emitted/cuda/sm_80/linear_int4.json")
    repeats = Repeats(manifest, launcher, fail)
    packed = torch.zeros((8, 32), dtype=torch.uint8)
    args = (halves(8, 64), packed, halves(8, 2))
    repeats.remember(manifest, args, bind_call(manifest, "cpu", args, {}))
    assert repeats.launch(*args).shape == (8, 8)
    assert repeats.launch(args[0], torch.empty((8, 32), dtype=torch.uint4), args[2]) is NotImplemented


@pytest.fixture
def launched(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel for a GPU whose launches are noted, with tensors on the CPU."""
    return pretend_gpu(launcher, monkeypatch)


def pretend_gpu(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kind = kernel.gpu_kernel() if hasattr(launcher, "launch") else Kernel
    found = kind.__new__(kind)
    assert isinstance(found, Kernel) and isinstance(kind.__call__, FunctionType) != hasattr(launcher, "launch")
    found.manifest, found._module, found._repeats, found._first = MANIFEST, cast(ModuleType, launcher), None, None
    found._run = Run(device="cuda", options=EngineOptions(), schedules=(), raise_findings=True)
    monkeypatch.setitem(kernel.TENSORS_ON, "cuda", "cpu")
    monkeypatch.setattr(kernel, "_gpu", lambda device: nullcontext(0))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return found


def test_a_repeated_call_launches_what_the_first_did(
    launched: Kernel, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert launched(A, B, C) is None
    monkeypatch.setattr(kernel, "bind_call", None)
    assert launched(A, B, C) is None
    assert launcher.calls[0] == launcher.calls[1]
    launcher.status = 2
    with pytest.raises(LaunchError):
        launched(A, B, C)


def test_a_call_with_a_stream_is_bound(launched: Kernel, launcher: Launcher) -> None:
    launched(A, B, C)
    launched(A, B, C, stream=5)
    assert [call[-1] for call in launcher.calls] == [0, 5]


def test_arguments_by_keyword_are_bound(launched: Kernel, launcher: Launcher) -> None:
    for _ in range(2):
        assert (
            launched(A, B, C=C) is None and launched(A, **{"B": B, "C": C}) is None and launched(A, B, C, **{}) is None
        )
    assert len(set(launcher.calls)) == 1 and len(launcher.calls) == 6
    with pytest.raises(ArgumentError):
        launched(A, B, C, D=C)


def test_another_gpu_is_made_current(launched: Kernel, launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "current_gpu", lambda: lambda: 1)
    launched(A, B, C)
    bound: list[Any] = []
    monkeypatch.setattr(kernel, "bind_call", lambda *given: bound.append(given) or bind_call(*given))
    assert launched(A, B, C) is None
    assert len(launcher.calls) == 2 and len(bound) == 1


def test_a_kernel_goes_with_what_it_remembers(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.freeze()  # a collection visits what this test makes, not all tests that pytest has collected
    try:
        product = pretend_gpu(launcher, monkeypatch)
        product(A, B, C)
        there = weakref.ref(product)
        del product
        gc.collect()
        assert there() is None
    finally:
        gc.unfreeze()
