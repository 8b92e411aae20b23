"""The arguments of a call: bound by name, sizes solved from shapes, outputs allocated, everything checked.

All checks precede the launch. Every rejection is an ArgumentError that names the argument, the expected and the given
value.
"""

from __future__ import annotations

import math
import numbers
import operator
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tile2cu_runtime.errors import ArgumentError
from tile2cu_runtime.shape import Extent
from tile2cu_runtime.spec import DTYPE_BYTES, PACKED_DTYPES, Manifest, ScalarArgument, SizeArgument, TensorArgument
from tile2cu_runtime.tensors import TensorView, allocate, unpacked, view_of


@dataclass(frozen=True, kw_only=True)
class BoundCall:
    """A call that is ready to launch.

    `tensors` and `numbers` are by name; `numbers` holds scalars and sizes. `allocated` are the outputs that the caller
    did not pass, in the manifest's order. `device` is "cpu" or "cuda:<index>".
    """

    tensors: Mapping[str, TensorView]
    numbers: Mapping[str, int | float]
    allocated: tuple[str, ...]
    device: str

    @property
    def result(self) -> Any:
        """The return value of the call: the allocated output, a tuple of several, or None."""
        owners = tuple(self.tensors[name].owner for name in self.allocated)
        return owners[0] if len(owners) == 1 else owners or None


def bind_call(manifest: Manifest, device: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> BoundCall:
    """Binds and checks the arguments of a call on `device`, "cpu" or "cuda". Errors: T2C-R100 to T2C-R112."""
    given = _by_name(manifest, args, kwargs)
    views = {tensor.name: _view(tensor, given[tensor.name]) for tensor in manifest.tensors if tensor.name in given}
    for tensor in manifest.tensors:
        if tensor.name in views:
            _check_type(tensor, views[tensor.name])
    where = _common_device(device, views)
    sizes = _solve_sizes(manifest, views, given)
    scalars = {a.name: _scalar(a, given[a.name]) for a in manifest.called if isinstance(a, ScalarArgument)}
    known = {**_integers(scalars), **sizes}
    _check_extents(manifest, views, known)
    allocated = tuple(manifest.arguments[i].name for i in manifest.outputs if manifest.arguments[i].name not in given)
    like = next(iter(views.values()), None)
    for tensor in manifest.tensors:
        if tensor.name in allocated:
            shape = tuple(_extent(extent, known, tensor) for extent in tensor.shape)
            views[tensor.name] = allocate(shape, tensor.dtype, like, where)
    for tensor in manifest.tensors:
        if tensor.strides:
            views[tensor.name] = _spread(tensor, views[tensor.name], known)
        _check_memory(tensor, views[tensor.name])
    _check_overlap(manifest, views)
    return BoundCall(tensors=views, numbers={**scalars, **sizes}, allocated=allocated, device=where)


def _integers(scalars: Mapping[str, int | float]) -> dict[str, int]:
    """The scalars that the shape of an output may depend on."""
    return {name: value for name, value in scalars.items() if isinstance(value, int)}


def call_sizes(manifest: Manifest, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, int]:
    """The run-time sizes of a call, from its tensors or as given by keyword. Errors: T2C-R100 to T2C-R106."""
    given = _by_name(manifest, args, kwargs)
    views = {tensor.name: _view(tensor, given[tensor.name]) for tensor in manifest.tensors if tensor.name in given}
    return _solve_sizes(manifest, views, given)


def _by_name(manifest: Manifest, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The given values by name. Positional arguments are all arguments, or all except the outputs."""
    every = [argument.name for argument in manifest.called]
    inputs = [name for name in every if name not in manifest.output_names]
    sizes = [size.name for size in manifest.sizes]
    named = inputs if len(args) <= len(inputs) else every
    if len(args) > len(every):
        counts = _counts(inputs, every)
        raise ArgumentError("T2C-R100", f"{_signature(manifest)} takes {counts}; {len(args)} were given")
    given = dict(zip(named, args, strict=False))
    for name, value in kwargs.items():
        if name in given:
            raise ArgumentError("T2C-R100", f"`{name}` is given twice", argument=name)
        if name not in every and name not in sizes:
            raise ArgumentError("T2C-R100", f"{_signature(manifest)} has no argument `{name}`", argument=name)
        given[name] = value
    missing = [name for name in (every if len(args) > len(inputs) else inputs) if name not in given]
    if missing:
        raise ArgumentError(
            "T2C-R100",
            f"{_signature(manifest)} takes {_counts(inputs, every)}; `{'`, `'.join(missing)}` not given",
            argument=missing[0],
        )
    return given


def _signature(manifest: Manifest) -> str:
    return f"{manifest.kernel}({', '.join(argument.name for argument in manifest.called)})"


def _counts(inputs: list[str], every: list[str]) -> str:
    counts = f"{len(every)} argument{'s' if len(every) != 1 else ''}"
    return counts if len(inputs) == len(every) else f"{len(inputs)} inputs, or {counts} with the outputs"


def _view(tensor: TensorArgument, value: Any) -> TensorView:
    view = view_of(value)
    if view is None:
        raise ArgumentError(
            "T2C-R101",
            f"`{tensor.name}` must be a {tensor.dtype} tensor of shape {_shape_text(tensor)}, "
            f"not {type(value).__name__}",
            argument=tensor.name,
            help="a NumPy array, a torch tensor, or an object with an array interface or DLPack",
        )
    if view.library == "torch" and getattr(view.owner, "requires_grad", False):
        _warn_of_gradients(tensor.name)
    return unpacked(view, tensor.dtype) if _is_packed(tensor, view) else view


def _warn_of_gradients(name: str) -> None:
    """Outputs are not part of torch's graph, so that a backward pass would stop at them."""
    import torch

    if torch.is_grad_enabled():
        warnings.warn(
            f"`{name}` requires a gradient, and the kernel's outputs have none: call the kernel from a"
            " torch.autograd.Function, or under torch.no_grad()",
            UserWarning,
            stacklevel=_levels_of_the_runtime(),
        )


def _levels_of_the_runtime() -> int:
    """The stacklevel of the code that called the kernel, seen from who asks."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("tile2cu_runtime."):
        frame, level = frame.f_back, level + 1
    return level


def _is_packed(tensor: TensorArgument, view: TensorView) -> bool:
    """Whether the tensor holds two elements per byte, as the kernel's does; tensors with one element per byte are
    rejected.
    """
    if tensor.dtype not in PACKED_DTYPES:
        return False
    named = PACKED_DTYPES[tensor.dtype]
    bytes_ = list(dict.fromkeys((named, "uint8", "int8")))
    if view.dtype not in bytes_ or not view.shape:
        raise ArgumentError(
            "T2C-R102",
            f"`{tensor.name}` must be {' or '.join(bytes_)}, two {tensor.dtype} per byte, not {view.dtype}",
            argument=tensor.name,
            help="the first element of a byte is in bits 0 to 3; the last extent is halved",
        )
    return True


def _check_type(tensor: TensorArgument, view: TensorView) -> None:
    if view.dtype != tensor.dtype and not (tensor.dtype == "ptr" and view.dtype in ("int64", "uint64")):
        message = f"`{tensor.name}` must be {tensor.dtype}, not {view.dtype}"
        raise ArgumentError("T2C-R102", message, argument=tensor.name)
    if (rank := len(tensor.shape)) != len(view.shape):
        message = f"`{tensor.name}` must have the shape {_shape_text(tensor)}, {rank} dimensions, not {view.shape}"
        raise ArgumentError("T2C-R103", message, argument=tensor.name)


def _common_device(device: str, views: Mapping[str, TensorView]) -> str:
    """The common device of all tensors, "cpu" or "cuda:<index>", of the kind for which the kernel was loaded."""
    first_name, first = next(iter(views.items()), ("", None))
    for name, view in views.items():
        if not view.device.startswith(device):
            raise ArgumentError(
                "T2C-R108",
                f"`{name}` is on {view.device}, and this kernel is loaded for {device}",
                argument=name,
                help=f'move the tensor, or load the kernel with device="{view.device.split(":")[0]}"',
            )
        if first is not None and view.device != first.device:
            raise ArgumentError(
                "T2C-R108", f"`{name}` is on {view.device}, `{first_name}` on {first.device}", argument=name
            )
    return first.device if first is not None else device


def _solve_sizes(manifest: Manifest, views: Mapping[str, TensorView], given: Mapping[str, Any]) -> dict[str, int]:
    """The sizes: as given by keyword, else from the first tensor that has the size as an extent."""
    sizes: dict[str, int] = {}
    for size in manifest.sizes:
        found = _integer(size, given[size.name]) if size.name in given else _first_extent(size.name, manifest, views)
        if found is None:
            raise ArgumentError(
                "T2C-R105",
                f"the size `{size.name}` does not follow from the shape of any given tensor",
                argument=size.name,
                help=f"pass it by keyword, {size.name}=...",
            )
        largest = 2 ** (8 * DTYPE_BYTES[size.dtype] - 1) - 1
        if not 0 <= found <= largest:
            raise ArgumentError(
                "T2C-R106", f"the size `{size.name}` is {found}, not in 0..{largest} ({size.dtype})", argument=size.name
            )
        sizes[size.name] = found
    return sizes


def _plain_extents(size: str, manifest: Manifest, views: Mapping[str, TensorView]) -> Iterator[tuple[str, int, int]]:
    """The given tensors that have the size as an extent: name, dimension, extent."""
    for tensor in manifest.tensors:
        if tensor.name in views:
            for dimension, extent in enumerate(tensor.shape):
                if extent.text == size:
                    yield tensor.name, dimension, views[tensor.name].shape[dimension]


def _first_extent(size: str, manifest: Manifest, views: Mapping[str, TensorView]) -> int | None:
    found = next((extent for _, _, extent in _plain_extents(size, manifest, views)), None)
    return _first_stride(size, manifest, views) if found is None else found


def _first_stride(size: str, manifest: Manifest, views: Mapping[str, TensorView]) -> int | None:
    """The size from the first given tensor that has it as a stride."""
    for tensor in manifest.tensors:
        for dimension, stride in enumerate(tensor.strides):
            if stride.text == size and tensor.name in views:
                return views[tensor.name].strides[dimension]
    return None


def _check_extents(manifest: Manifest, views: Mapping[str, TensorView], sizes: Mapping[str, int]) -> None:
    """Checks every extent against the manifest for these sizes; the message names the source of each size."""
    for tensor in manifest.tensors:
        if tensor.name not in views:
            continue
        for dimension, extent in enumerate(tensor.shape):
            expected, found = _extent(extent, sizes, tensor), views[tensor.name].shape[dimension]
            if expected == found:
                continue
            because = "; ".join(_origin(name, sizes[name], manifest, views) for name in sorted(extent.names))
            raise ArgumentError(
                "T2C-R104",
                f"`{tensor.name}` must have the shape {_shape_text(tensor)}: dimension {dimension} must be "
                f"{expected}, not {found}",
                argument=tensor.name,
                notes=(because,) if because else (),
            )


def _origin(size: str, value: int, manifest: Manifest, views: Mapping[str, TensorView]) -> str:
    for name, dimension, extent in _plain_extents(size, manifest, views):
        if extent == value:
            return f"{size} = {value} from dimension {dimension} of `{name}`, whose shape is {views[name].shape}"
    return f"{size} = {value} as given"


def _extent(extent: Extent, sizes: Mapping[str, int], tensor: TensorArgument) -> int:
    try:
        value = extent.evaluate(sizes)
    except ZeroDivisionError:
        value = -1
    if value < 0:
        raise ArgumentError(
            "T2C-R106", f"an extent of `{tensor.name}`, {extent}, has no value for {dict(sizes)}", argument=tensor.name
        )
    return value


def _spread(tensor: TensorArgument, view: TensorView, sizes: Mapping[str, int]) -> TensorView:
    """Checks the strides of a tensor against the manifest; such a tensor may have padding between its elements."""
    wanted = tuple(_extent(stride, sizes, tensor) for stride in tensor.strides)
    steps = [(extent, stride, found) for extent, stride, found in zip(view.shape, wanted, view.strides, strict=True)]
    if any(extent > 1 and stride != found for extent, stride, found in steps) and 0 not in view.shape:
        raise ArgumentError(
            "T2C-R107",
            f"`{tensor.name}` must have the strides {wanted}, in elements; its shape is {view.shape}, its strides "
            f"{view.strides}",
            argument=tensor.name,
        )
    element = view.bytes // max(1, math.prod(view.shape))
    last = sum((extent - 1) * stride for extent, stride, _ in steps)
    return view._replace(contiguous=True, bytes=(last + 1) * element if view.bytes else 0)


def _check_memory(tensor: TensorArgument, view: TensorView) -> None:
    if not view.contiguous:
        raise ArgumentError(
            "T2C-R107",
            f"`{tensor.name}` must be contiguous in row-major order; its shape is {view.shape}, its strides "
            f"{view.strides} elements",
            argument=tensor.name,
            help="numpy.ascontiguousarray(...) or .contiguous()",
        )
    if view.address % tensor.alignment and view.bytes:
        raise ArgumentError(
            "T2C-R109",
            f"`{tensor.name}` must be aligned to {tensor.alignment} bytes; its address is {view.address:#x}",
            argument=tensor.name,
            help="slices may be misaligned: copy the tensor",
        )
    if tensor.written and not view.writable:
        message = f"`{tensor.name}` is written, and the given tensor is read-only"
        raise ArgumentError("T2C-R110", message, argument=tensor.name)


def _check_overlap(manifest: Manifest, views: Mapping[str, TensorView]) -> None:
    """Checks that a written tensor overlaps no other argument: the kernel's pointers are __restrict__."""
    for a, b in combinations(manifest.tensors, 2):
        first, second = views[a.name], views[b.name]
        if not (a.written or b.written) or not first.bytes or not second.bytes:
            continue
        if first.address < second.address + second.bytes and second.address < first.address + first.bytes:
            written = a if a.written else b
            raise ArgumentError(
                "T2C-R111",
                f"`{a.name}` and `{b.name}` overlap in memory, and `{written.name}` is written",
                argument=written.name,
            )


def _scalar(scalar: ScalarArgument, value: Any) -> int | float:
    if scalar.dtype == "bool":
        if isinstance(value, (bool, int)) or type(value).__name__ in ("bool", "bool_"):
            return int(bool(value))
        raise _not_a(scalar, value)
    if scalar.dtype == "ptr" and (view := view_of(value)) is not None:
        return view.address
    if not scalar.dtype.startswith(("int", "uint", "ptr")):
        if isinstance(value, (str, bytes)) or not (isinstance(value, numbers.Real) or hasattr(value, "__float__")):
            raise _not_a(scalar, value)
        return _float(scalar, value)
    found = _integer(scalar, value)
    bits = 8 * DTYPE_BYTES[scalar.dtype]
    low, high = (0, 2**bits - 1) if scalar.dtype.startswith(("u", "p")) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not low <= found <= high:
        raise ArgumentError(
            "T2C-R112", f"`{scalar.name}` is {found}, not in {low}..{high} ({scalar.dtype})", argument=scalar.name
        )
    return found


def _float(scalar: ScalarArgument, value: Any) -> float:
    """The number; rejected if it overflows the type, not converted to infinity."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _not_a(scalar, value) from None
    if scalar.dtype in ("float32", "bfloat16") and math.isfinite(found) and abs(found) >= 2.0**128:
        message = f"`{scalar.name}` is {found}, too large for {scalar.dtype}"
        raise ArgumentError("T2C-R112", message, argument=scalar.name)
    return found


def _integer(argument: ScalarArgument | SizeArgument, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise _not_a(argument, value) from None


def _not_a(argument: ScalarArgument | SizeArgument, value: Any) -> ArgumentError:
    return ArgumentError(
        "T2C-R112", f"`{argument.name}` must be {argument.dtype}, not {type(value).__name__}", argument=argument.name
    )


def _shape_text(tensor: TensorArgument) -> str:
    texts = [str(extent) for extent in tensor.shape]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def no_size(manifest: Manifest, name: str, known: str) -> ArgumentError:
    """The error of a size that the kernel does not take at run time; the `known` ones are those that it takes."""
    value = dict(manifest.bindings).get(name)
    compiled_in = "" if value is None else f"{name} is {value} in this kernel, at compile time: -D {name}=..."
    message = f"{manifest.kernel} has no size `{name}`; it has {known}"
    return ArgumentError("T2C-R100", message, argument=name, help=compiled_in)
