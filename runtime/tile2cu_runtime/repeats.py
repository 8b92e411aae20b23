"""Fast path for repeated calls: checks that depend only on dtype, shape, strides and device are not repeated.

Binding and checking a call takes tens of microseconds in Python, launching it a few. A call with positional torch
tensors that agree, except for their addresses, with those of an earlier successful call needs only its addresses
checked: in C++ (repeats.cpp) if that can be built and torch exports its tensors to C++, else in Python.
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

_MOST = 256  # kinds of calls that are cached; then the cache is cleared
_NATIVE = Path(__file__).with_name("repeats.cpp")
_MODULE = "tile2cu_repeats"
_Key = tuple[Any, ...]


class _Known(NamedTuple):
    """A known kind of calls.

    The bytes of each tensor, sizes, outputs to allocate (index, shape, dtype), and the workspace's bytes.
    """

    bytes: tuple[int, ...]
    sizes: tuple[int, ...]
    missing: tuple[tuple[int, tuple[int, ...], Any], ...]
    workspace: int
    gpu: int


class Repeats:
    """The kinds of calls of a kernel that were bound and checked in this process.

    `launch(*args)` launches a call of a known kind and returns its result; NotImplemented if the call has to be bound
    and checked. `fail` raises for a status other than 0.
    """

    launch: Callable[..., Any]

    def __init__(self, manifest: Manifest, module: Any, fail: Callable[[int], Any]) -> None:
        self._known: dict[_Key, _Known] = {}
        self._call, self._fail = module.call, fail
        self._workspace_bytes = module.workspace_bytes if manifest.workspace else None
        self._stream, self._gpu = raw_stream(), current_gpu()
        tensors = manifest.tensors
        # Sizes follow tensors, and no scalar has to be converted.
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
        """The C++ implementation, or None if it is unavailable."""
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
        except NotImplementedError:  # another major version
            return None

    def _launch(self, *args: Any) -> Any:
        try:
            known = self._known.get(_key(args))
            if known is None:
                return NotImplemented
            addresses = [tensor.data_ptr() for tensor in args]
        except (AttributeError, RuntimeError, TypeError):  # not torch tensors with their own memory
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
        """Whether the tensors are aligned, and written ones overlap no other."""
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
        """Records a successful call, if calls of its kind may be repeated."""
        views = [call.tensors[tensor.name] for tensor in manifest.tensors]
        torch = sys.modules.get("torch")
        if torch is None or not self._applies or not all(view.bytes and view.library == "torch" for view in views):
            return
        if any(type(arg) not in (torch.Tensor, torch.nn.Parameter) for arg in args) or not args:
            return
        if any(views[place].owner.requires_grad for place in self._written):  # whether they are writable can change
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
    """Everything except the addresses of torch tensors that determines whether a call is valid. Raises for other
    objects.
    """
    key: list[Any] = []
    for t in args:
        gaps = t.is_contiguous() or t.stride()
        key += (t.__class__, t.dtype, t.shape, t.get_device(), gaps, t.requires_grad, t.is_neg())
    return tuple(key)


def _allocation(shape: tuple[int, ...], dtype: Any, device: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function and arguments that allocate an uninitialised tensor on `device`, which is current at the call."""
    torch = sys.modules["torch"]
    # Inductor's function: argument parsing takes half of torch.empty's time.
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    if (fast := getattr(guards, f"_empty_strided_{device.type}", None)) is not None:
        return fast, (shape, dense_strides(shape), dtype), {}
    return torch.empty, (shape,), {"dtype": dtype, "device": device}


def raw_stream() -> Callable[[int], int]:
    """The address of torch's current stream on a GPU."""
    import torch

    fast: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return fast or (lambda index: int(torch.cuda.current_stream(index).cuda_stream))


def current_gpu() -> Callable[[], int]:
    """The index of torch's current GPU. Called with tensors on a GPU, so torch is initialised."""
    import torch

    fast: Callable[[], int] | None = getattr(torch._C, "_cuda_getDevice", None)
    return fast or torch.cuda.current_device


@functools.lru_cache(maxsize=1)
def native_module() -> ModuleType | None:
    """repeats.cpp, from the cache or built; None without Python.h or a compiler."""
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
