"""Substitutes for the tensors of a file's driver: they have a shape and a type, so that calls of kernels give sizes."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tile2cu.core.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8, DType
from tile2cu.frontend import builtins
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.operators import static_int
from tile2cu.frontend.values import Builtin, Instance, Interval, Opaque, TorchTensor


def attribute(tensor: TorchTensor, name: str, text: str) -> object:
    """`tensor.name`."""
    match name:
        case "shape":
            return tensor.shape
        case "dtype":
            return tensor.dtype
        case "ndim":
            return len(tensor.shape)
        case "T" | "mT":
            return TorchTensor(tensor.shape[::-1], tensor.dtype)
        case "data":
            return tensor
        case "is_cuda":
            return True
        case _ if name in _METHODS:
            method = _METHODS[name]
            return Builtin(text, lambda cx, *args, **named: method(cx, tensor, *args, **named))
        case _ if name in _SAME or name.endswith("_"):
            return Builtin(text, lambda cx, *args, **named: tensor)
        case _:
            return Opaque(text)


def element(cx: Context, tensor: TorchTensor, items: tuple[object, ...]) -> object:
    """`tensor[items]`: indices leave their dimension out, slices keep theirs, one tensor of indices brings its own."""
    shape: list[object] = []
    gathers = [item for item in items if isinstance(item, TorchTensor) and item.dtype != BOOL]
    for extent, item in zip(tensor.shape, items, strict=False):
        if isinstance(item, Interval):
            shape.append(_sliced(extent, item))
        elif isinstance(item, TorchTensor) and len(gathers) == 1:
            shape += gathers[0].shape
        elif not isinstance(item, int):
            return Opaque("an element of a tensor")
    return TorchTensor((*shape, *tensor.shape[len(items) :]), tensor.dtype)


def _sliced(extent: object, item: Interval) -> object:
    start, stop = 0 if item.start is None else item.start, extent if item.stop is None else item.stop
    if start == 0 and stop is extent:
        return extent
    if isinstance(start, int) and isinstance(stop, int) and isinstance(extent, int):
        return len(range(*slice(int(start), int(stop)).indices(int(extent))))
    return Opaque("an extent of a slice")


def _shape(cx: Context, shape: Sequence[object]) -> tuple[object, ...]:
    if len(shape) == 1 and isinstance(shape[0], tuple | list):
        return tuple(builtins.items(cx, shape[0]))
    return tuple(shape)


def _made(cx: Context, *shape: object, size: object = None, dtype: object = None, **options: object) -> object:
    """`torch.empty(M, N, dtype=...)` and its kin."""
    return TorchTensor(_shape(cx, shape if size is None else (size,)), FLOAT32 if dtype is None else dtype)


def _full(cx: Context, size: object, value: object, *, dtype: object = None, **options: object) -> object:
    return TorchTensor(_shape(cx, (size,)), FLOAT32 if dtype is None else dtype)


def _randint(cx: Context, *arguments: object, size: object = None, dtype: object = None, **options: object) -> object:
    found = size if size is not None else next((arg for arg in arguments if isinstance(arg, tuple | list)), None)
    if found is None:
        return Opaque("torch.randint(...)")
    return TorchTensor(_shape(cx, (found,)), INT64 if dtype is None else dtype)


def _like(cx: Context, tensor: object, *arguments: object, dtype: object = None, **options: object) -> object:
    if not isinstance(tensor, TorchTensor):
        return Opaque("a tensor like another")
    return TorchTensor(tensor.shape, tensor.dtype if dtype is None else dtype)


def _tensor(cx: Context, values: object, dtype: object = None, **options: object) -> object:
    """`torch.tensor([...])`."""
    shape: list[object] = []
    inner = values
    while isinstance(inner, list | tuple) and inner:
        shape.append(len(inner))
        inner = inner[0]
    if isinstance(inner, Opaque):
        return inner
    kind = FLOAT32 if isinstance(inner, float) else BOOL if isinstance(inner, bool) else INT64
    return TorchTensor(tuple(shape), kind if dtype is None else dtype)


def _arange(cx: Context, *bounds: object, dtype: object = None, **options: object) -> object:
    ends = [int(bound) for bound in bounds if isinstance(bound, int)]
    if len(ends) < len(bounds) or not 1 <= len(ends) <= 3:
        return Opaque("torch.arange(...)")
    return TorchTensor((len(range(*ends)),), INT64 if dtype is None else dtype)


def _linspace(cx: Context, *bounds: object, steps: object = None, dtype: object = None, **options: object) -> object:
    """`torch.linspace(start, end, steps)`."""
    count = bounds[2] if len(bounds) > 2 else steps
    return Opaque("torch.linspace(...)") if count is None else _made(cx, count, dtype=dtype)


def _randperm(cx: Context, count: object, dtype: object = None, **options: object) -> object:
    return _made(cx, count, dtype=INT64 if dtype is None else dtype)


def _cat(cx: Context, tensors: object, dim: object = 0, **options: object) -> object:
    """`torch.cat([a, b], dim)`: the extents along one dimension add up."""
    parts = [each for each in builtins.items(cx, tensors) if isinstance(each, TorchTensor)]
    if not parts or len(parts) < len(builtins.items(cx, tensors)):
        return Opaque("torch.cat(...)")
    at, shape = int(static_int(dim, "the dimension of torch.cat")), list(parts[0].shape)
    extents = [each.shape[at] for each in parts]
    numbers = [int(extent) for extent in extents if isinstance(extent, int)]
    shape[at] = sum(numbers) if len(numbers) == len(extents) else Opaque("an extent of torch.cat(...)")
    return TorchTensor(tuple(shape), parts[0].dtype)


def _device_properties(cx: Context, *device: object) -> object:
    target = cx.target
    facts: dict[str, object] = {
        "multi_processor_count": target.multiprocessors,
        "major": target.capability[0],
        "minor": target.capability[1],
        "warp_size": target.warp_size,
        "shared_memory_per_multiprocessor": target.shared_memory,
        "shared_memory_per_block_optin": target.shared_limit,
    }
    return Instance("the device", facts)


def _broadcast_shapes(cx: Context, *shapes: object) -> object:
    """`torch.broadcast_shapes(a, b)`: the shape of what is computed of tensors of these shapes."""
    whole: tuple[object, ...] = ()
    for shape in shapes:
        extents = (shape,) if isinstance(shape, int) else tuple(builtins.items(cx, shape))
        rank = max(len(whole), len(extents))
        pairs = zip((1,) * (rank - len(whole)) + whole, (1,) * (rank - len(extents)) + extents, strict=True)
        whole = tuple(_broadcast(a, b) for a, b in pairs)
    return whole


def _broadcast(a: object, b: object) -> object:
    one, other = static_int(a, "an extent"), static_int(b, "an extent")
    if one != other and 1 not in (one, other):
        raise Fault("T2C-F034", f"extents of {int(one)} and {int(other)} do not go together")
    return b if one == 1 else a


_FUNCTIONS: Mapping[str, Callable[..., object]] = MappingProxyType(
    {
        **dict.fromkeys(("empty", "zeros", "ones", "rand", "randn"), _made),
        **dict.fromkeys(("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like"), _like),
        "full": _full,
        "randint": _randint,
        "tensor": _tensor,
        "arange": _arange,
        "linspace": _linspace,
        "randperm": _randperm,
        "cat": _cat,
        "broadcast_shapes": _broadcast_shapes,
        "Size": lambda cx, shape: _shape(cx, (shape,)),
    }
)
_CUDA: Mapping[str, Callable[..., object]] = MappingProxyType(
    {
        "is_available": lambda cx: True,
        "current_device": lambda cx: 0,
        "device_count": lambda cx: 1,
        "get_device_name": lambda cx, *device: "NVIDIA sm_{}{}".format(*cx.target.capability),
        "get_device_capability": lambda cx, *device: cx.target.capability,
        "get_device_properties": _device_properties,
    }
)
FUNCTIONS: Mapping[str, object] = {name: Builtin(f"torch.{name}", run) for name, run in _FUNCTIONS.items()}
CUDA: Mapping[str, object] = {name: Builtin(f"torch.cuda.{name}", run) for name, run in _CUDA.items()}


def _converted(dtype: DType) -> Callable[..., object]:
    return lambda cx, tensor, *args, **named: TorchTensor(tensor.shape, dtype)


def _to(cx: Context, tensor: TorchTensor, *arguments: object, dtype: object = None, **options: object) -> object:
    found = next((arg for arg in (dtype, *arguments) if isinstance(arg, DType)), tensor.dtype)
    return TorchTensor(tensor.shape, found)


def _size(cx: Context, tensor: TorchTensor, dim: object = None) -> object:
    return tensor.shape if dim is None else tensor.shape[int(static_int(dim, ".size()"))]


def _stride(cx: Context, tensor: TorchTensor, dim: object = None) -> object:
    """Strides of a contiguous tensor."""
    strides = tuple(_count(tensor.shape[at + 1 :]) for at in range(len(tensor.shape)))
    return strides if dim is None else strides[int(static_int(dim, ".stride()"))]


def _view(cx: Context, tensor: TorchTensor, *shape: object, **options: object) -> object:
    """`.view(...)` and `.reshape(...)`: one extent may be -1."""
    extents = list(_shape(cx, shape))
    if len(extents) == 1 and isinstance(extents[0], DType):
        return TorchTensor(tensor.shape, extents[0])
    known = [extent for extent in extents if not (isinstance(extent, int) and extent == -1)]
    if len(known) == len(extents) - 1:
        whole, rest = _count(tensor.shape), _count(known)
        numbers = isinstance(whole, int) and isinstance(rest, int) and rest > 0
        open_one: object = whole // rest if numbers else Opaque("an extent of a view")  # type: ignore[operator]
        extents = [extent if any(extent is part for part in known) else open_one for extent in extents]
    return TorchTensor(tuple(extents), tensor.dtype)


def _count(shape: Sequence[object]) -> object:
    """The number of elements of a shape."""
    extents = [int(extent) for extent in shape if isinstance(extent, int)]
    return math.prod(extents) if len(extents) == len(shape) else Opaque("the number of elements")


def _transposed(cx: Context, tensor: TorchTensor, first: object = -2, second: object = -1) -> object:
    shape = list(tensor.shape)
    a, b = int(static_int(first, ".transpose()")), int(static_int(second, ".transpose()"))
    shape[a], shape[b] = shape[b], shape[a]
    return TorchTensor(tuple(shape), tensor.dtype)


def _permuted(cx: Context, tensor: TorchTensor, *order: object) -> object:
    dims = [int(static_int(dim, ".permute()")) for dim in _shape(cx, order)]
    return TorchTensor(tuple(tensor.shape[dim] for dim in dims), tensor.dtype)


def _expanded(cx: Context, tensor: TorchTensor, *shape: object) -> object:
    """`.expand(...)`: -1 keeps an extent; new ones come first."""
    wanted = _shape(cx, shape)
    old = (*wanted[: len(wanted) - len(tensor.shape)], *tensor.shape)
    kept = (isinstance(extent, int) and extent == -1 for extent in wanted)
    extents = (own if keep else extent for own, extent, keep in zip(old, wanted, kept, strict=True))
    return TorchTensor(tuple(extents), tensor.dtype)


def _sorted(cx: Context, tensor: TorchTensor, *arguments: object, **options: object) -> object:
    """`.sort()`: the values and their places."""
    return tensor, TorchTensor(tensor.shape, INT64)


def _unsqueezed(cx: Context, tensor: TorchTensor, dim: object) -> object:
    at = int(static_int(dim, ".unsqueeze()")) % (len(tensor.shape) + 1)
    return TorchTensor((*tensor.shape[:at], 1, *tensor.shape[at:]), tensor.dtype)


_SAME = frozenset(
    ("cuda", "cpu", "contiguous", "clone", "detach", "abs", "exp", "sqrt", "log", "neg", "sigmoid", "tanh", "relu")
    + ("softmax", "clamp", "pin_memory", "round")
)
_METHODS: Mapping[str, Callable[..., object]] = MappingProxyType(
    {
        "size": _size,
        "dim": lambda cx, tensor: len(tensor.shape),
        "numel": lambda cx, tensor: _count(tensor.shape),
        "stride": _stride,
        "is_contiguous": lambda cx, tensor: True,
        "to": _to,
        "type": _to,
        "half": _converted(FLOAT16),
        "bfloat16": _converted(BFLOAT16),
        "float": _converted(FLOAT32),
        "double": _converted(FLOAT64),
        "int": _converted(INT32),
        "long": _converted(INT64),
        "char": _converted(INT8),
        "byte": _converted(UINT8),
        "bool": _converted(BOOL),
        "view": _view,
        "reshape": _view,
        "transpose": _transposed,
        "t": _transposed,
        "permute": _permuted,
        "unsqueeze": _unsqueezed,
        "expand": _expanded,
        "sort": _sorted,
    }
)
