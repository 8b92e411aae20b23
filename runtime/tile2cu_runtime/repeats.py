"""Calls like an earlier one: what was found right for tensors of one type, shape and place is not looked at again.

Binding and checking a call costs tens of microseconds in Python, launching it a few. A call that gives torch tensors by
position, equal in all but their memory to those of a call that passed every check, needs only that looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from tile2cu_runtime.arguments import BoundCall
from tile2cu_runtime.spec import Manifest, SizeArgument, TensorArgument

_MOST = 256  # kinds of calls that are remembered; then they are forgotten
_Key = tuple[Any, ...]


class _Known(NamedTuple):
    """What is known of a kind of calls: bytes of each tensor, sizes, and outputs to allocate (place, shape, dtype)."""

    bytes: tuple[int, ...]
    sizes: tuple[int, ...]
    missing: tuple[tuple[int, tuple[int, ...], Any], ...]
    gpu: int


class Prepared(NamedTuple):
    """A call that may be launched: the launcher's arguments but the stream, what the call returns, and the GPU."""

    values: tuple[int, ...]
    result: Any
    gpu: int


class Repeats:
    """The kinds of calls of a kernel that were bound and checked in this process."""

    def __init__(self, manifest: Manifest) -> None:
        self._known: dict[_Key, _Known] = {}
        tensors = manifest.tensors
        # Sizes follow tensors, and no scalar is to be converted.
        self._applies = all(isinstance(argument, TensorArgument | SizeArgument) for argument in manifest.arguments)
        self._alignment = max((tensor.alignment for tensor in tensors), default=1) - 1
        self._written = tuple(place for place, tensor in enumerate(tensors) if tensor.written)
        self._pairs = tuple(
            (a, b) for a in self._written for b in range(len(tensors)) if b > a or (b < a and b not in self._written)
        )

    def prepared(self, args: tuple[Any, ...]) -> Prepared | None:
        """The call, if one like it is known and nothing speaks against it: else it is to be bound and checked."""
        try:
            known = self._known.get(_key(args))
            if known is None:
                return None
            addresses = [tensor.data_ptr() for tensor in args]
        except (AttributeError, RuntimeError, TypeError):  # no torch tensors with memory of their own
            return None
        made: list[Any] = []
        if known.missing:
            empty, device = sys.modules["torch"].empty, args[0].device
            for place, shape, dtype in known.missing:
                made.append(empty(shape, dtype=dtype, device=device))
                addresses.insert(place, made[-1].data_ptr())
        bits = 0
        for address in addresses:
            bits |= address
        if bits & self._alignment:
            return None
        for a, b in self._pairs:
            first, second = addresses[a], addresses[b]
            if first < second + known.bytes[b] and second < first + known.bytes[a]:
                return None
        result = (made[0] if len(made) == 1 else tuple(made)) if made else None
        return Prepared((*addresses, *known.sizes), result, known.gpu)

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
        self._known[_key(args)] = _Known(
            bytes=tuple(view.bytes for view in views),
            sizes=tuple(int(call.numbers[size.name]) for size in manifest.sizes),
            missing=tuple((place, view.shape, view.owner.dtype) for place, view in made),
            gpu=int(call.device.partition(":")[2] or 0),
        )


def _key(args: tuple[Any, ...]) -> _Key:
    """All but the memory of torch tensors that decides whether a call is right. Raises what others raise."""
    key: list[Any] = []
    for t in args:
        gaps = t.is_contiguous() or t.stride()
        key += (t.__class__, t.dtype, t.shape, t.get_device(), gaps, t.requires_grad, t.is_neg())
    return tuple(key)


def raw_stream() -> Callable[[int], int]:
    """torch's current stream on a GPU, as an address."""
    import torch

    fast: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return fast or (lambda index: int(torch.cuda.current_stream(index).cuda_stream))
