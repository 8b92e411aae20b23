"""Calls like an earlier one: what was found right for tensors of one type, shape and place is not looked at again.

Binding and checking a call costs tens of microseconds in Python, launching it a few. A call that gives torch tensors by
position, equal in all but their memory to those of a call that passed every check, needs only that looked at: in C++
(repeats.cpp), where that can be built and torch tells C++ of its tensors, else in Python.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from tile2cu_runtime import cache
from tile2cu_runtime.arguments import BoundCall
from tile2cu_runtime.compile import run_compiler
from tile2cu_runtime.compilers import find_gxx
from tile2cu_runtime.errors import CompileError
from tile2cu_runtime.spec import Manifest, SizeArgument, TensorArgument
from tile2cu_runtime.tensors import dense_strides

_MOST = 256  # kinds of calls that are remembered; then they are forgotten
_NATIVE = Path(__file__).with_name("repeats.cpp")
_MODULE = "tile2cu_repeats"
_Key = tuple[Any, ...]


class _Known(NamedTuple):
    """What is known of a kind of calls.

    Bytes of each tensor, sizes, outputs to allocate (place, shape, dtype), and the workspace's bytes.
    """

    bytes: tuple[int, ...]
    sizes: tuple[int, ...]
    missing: tuple[tuple[int, tuple[int, ...], Any], ...]
    workspace: int
    gpu: int


class Repeats:
    """The kinds of calls of a kernel that were bound and checked in this process.

    `launch(*args)` launches a call like one of them, and gives what it returns; NotImplemented when the call is to be
    bound and checked. `fail` raises for a status other than 0.
    """

    launch: Callable[..., Any]

    def __init__(self, manifest: Manifest, module: Any, fail: Callable[[int], Any]) -> None:
        self._known: dict[_Key, _Known] = {}
        self._call, self._fail = module.call, fail
        self._workspace_bytes = module.workspace_bytes if manifest.workspace else None
        self._stream, self._gpu = raw_stream(), current_gpu()
        tensors = manifest.tensors
        # Sizes follow tensors, and no scalar is to be converted.
        plain = all(isinstance(argument, TensorArgument | SizeArgument) for argument in manifest.arguments)
        self._applies = plain and not any(tensor.strides for tensor in tensors)
        self._alignment = max((tensor.alignment for tensor in tensors), default=1)
        self._written = tuple(place for place, tensor in enumerate(tensors) if tensor.written)
        self._pairs = tuple(
            (a, b) for a in self._written for b in range(len(tensors)) if b > a or (b < a and b not in self._written)
        )
        self._native = self._in_cpp(len(tensors), module)
        self.launch = self._native or self._launch

    def _in_cpp(self, tensors: int, module: Any) -> Any:
        """What does the same in C++, or None where it cannot be had."""
        torch = sys.modules["torch"]
        exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
        capsule = getattr(module, "launch", None)
        if not self._applies or exchange is None or capsule is None or (native := native_module()) is None:
            return None
        try:
            return native.Repeats(
                exchange,
                capsule,
                torch.Tensor,
                torch.nn.Parameter,
                self._gpu,
                self._fail,
                self._alignment,
                [place in self._written for place in range(tensors)],
                [place for pair in self._pairs for place in pair],
            )
        except NotImplementedError:  # of another major version
            return None

    def _launch(self, *args: Any) -> Any:
        try:
            known = self._known.get(_key(args))
            if known is None:
                return NotImplemented
            addresses = [tensor.data_ptr() for tensor in args]
        except (AttributeError, RuntimeError, TypeError):  # no torch tensors with memory of their own
            return NotImplemented
        made: list[Any] = []
        if known.missing:
            empty, device = sys.modules["torch"].empty, args[0].device
            for place, shape, dtype in known.missing:
                made.append(empty(shape, dtype=dtype, device=device))
                addresses.insert(place, made[-1].data_ptr())
        if not self._is_legal(addresses, known.bytes) or self._gpu() != known.gpu:
            return NotImplemented
        status = self._call(*addresses, *known.sizes, self._stream(known.gpu))
        if status:
            self._fail(status)
        return (made[0] if len(made) == 1 else tuple(made)) if made else None

    def _is_legal(self, addresses: list[int], bytes_: tuple[int, ...]) -> bool:
        """Whether the tensors are aligned, and what is written lies apart from the rest."""
        bits = 0
        for address in addresses:
            bits |= address
        if bits & (self._alignment - 1):
            return False
        for a, b in self._pairs:
            first, second = addresses[a], addresses[b]
            if first < second + bytes_[b] and second < first + bytes_[a]:
                return False
        return True

    def remember(self, manifest: Manifest, args: tuple[Any, ...], call: BoundCall) -> None:
        """Notes a call that passed every check, if calls like it may be repeated."""
        views = [call.tensors[tensor.name] for tensor in manifest.tensors]
        torch = sys.modules.get("torch")
        if torch is None or not self._applies or not all(view.bytes and view.library == "torch" for view in views):
            return
        if any(type(arg) not in (torch.Tensor, torch.nn.Parameter) for arg in args) or not args:
            return
        if any(views[place].owner.requires_grad for place in self._written):  # whether they may be written can change
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        places = {tensor.name: place for place, tensor in enumerate(manifest.tensors)}
        made = ((places[name], call.tensors[name]) for name in call.allocated)
        sizes = tuple(int(call.numbers[size.name]) for size in manifest.sizes)
        known = _Known(
            bytes=tuple(view.bytes for view in views),
            sizes=sizes,
            workspace=self._workspace_bytes(*(0 for _ in views), *sizes, 0) if self._workspace_bytes else 0,
            missing=tuple((place, tuple(view.owner.shape), view.owner.dtype) for place, view in made),
            gpu=int(call.device.partition(":")[2] or 0),
        )
        self._known[_key(args)] = known
        if self._native is not None and not self._remember_in_cpp(args, known):
            self.launch = self._launch

    def _remember_in_cpp(self, args: tuple[Any, ...], known: _Known) -> bool:
        device = args[0].device
        outputs = [_allocation(shape, dtype, device) for _, shape, dtype in known.missing]
        if known.workspace:
            outputs.append(_allocation((known.workspace,), sys.modules["torch"].uint8, device))
        places = tuple(place for place, _, _ in known.missing)
        return bool(self._native.remember(args, known.bytes, known.sizes, places, tuple(outputs), known.gpu))


def _key(args: tuple[Any, ...]) -> _Key:
    """All but the memory of torch tensors that decides whether a call is right. Raises what others raise."""
    key: list[Any] = []
    for t in args:
        gaps = t.is_contiguous() or t.stride()
        key += (t.__class__, t.dtype, t.shape, t.get_device(), gaps, t.requires_grad, t.is_neg())
    return tuple(key)


def _allocation(shape: tuple[int, ...], dtype: Any, device: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """What to call with what for an uninitialised tensor on the current device, which `device` is then."""
    torch = sys.modules["torch"]
    # Inductor's own: half of torch.empty's time goes into its arguments.
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    if (fast := getattr(guards, f"_empty_strided_{device.type}", None)) is not None:
        return fast, (shape, dense_strides(shape), dtype), {}
    return torch.empty, (shape,), {"dtype": dtype, "device": device}


def raw_stream() -> Callable[[int], int]:
    """torch's current stream on a GPU, as an address."""
    import torch

    fast: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return fast or (lambda index: int(torch.cuda.current_stream(index).cuda_stream))


def current_gpu() -> Callable[[], int]:
    """The index of torch's current GPU. What is asked here comes with tensors on one: torch has set it up."""
    import torch

    fast: Callable[[], int] | None = getattr(torch._C, "_cuda_getDevice", None)
    return fast or torch.cuda.current_device


@functools.lru_cache(maxsize=1)
def native_module() -> ModuleType | None:
    """repeats.cpp, from the cache or built now; None without Python.h or a compiler."""
    include = sysconfig.get_path("include")
    if not (Path(include) / "Python.h").is_file():
        return None
    try:
        library = _native_library(include)
    except CompileError:
        return None
    loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(library))
    spec = importlib.util.spec_from_file_location(_MODULE, library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _native_library(include: str) -> Path:
    gxx = find_gxx()
    flags = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-shared")
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
    key = cache.content_key(_NATIVE.read_bytes(), gxx.version, *flags, include, suffix, sys.version)

    def make(temporary: Path, place: Path) -> None:
        command = (gxx.path, *flags, "-I", include, str(_NATIVE), "-o", _MODULE + suffix)
        run_compiler(command, temporary, _NATIVE.name)

    return cache.get_or_build("repeats", key, make).folder / (_MODULE + suffix)
