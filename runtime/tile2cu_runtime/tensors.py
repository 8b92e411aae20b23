"""A common view of tensors of NumPy, torch and other libraries: address, shape and type."""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, NamedTuple

from tile2cu_runtime.errors import ArgumentError
from tile2cu_runtime.spec import PACKED_DTYPES

_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
# Array-interface type strings, byte order stripped.
_TYPESTRS = {
    "b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16",
    "u4": "uint32", "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64",
}  # fmt: skip


class TensorView(NamedTuple):
    """A tensor in memory. A tuple, because one is created per argument and call.

    `shape` and `strides` are in elements; `bytes` is the size of a contiguous tensor of that shape; `device` is "cpu"
    or "cuda:<index>"; `library` allocates outputs like it, "numpy" or "torch". `owner` keeps the memory alive.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    bytes: int
    device: str
    contiguous: bool
    writable: bool
    library: str
    owner: Any


def view_of(value: Any) -> TensorView | None:
    """The tensor in `value`, without a copy; None if it is not a tensor.

    Accepts NumPy arrays, torch tensors, and objects with __cuda_array_interface__, __array_interface__ or __dlpack__.
    """
    if (torch := sys.modules.get("torch")) is not None and isinstance(value, torch.Tensor):
        return _of_torch(value, torch)
    if (numpy := sys.modules.get("numpy")) is not None and isinstance(value, numpy.ndarray):
        return _of_numpy(value)
    if hasattr(value, "__cuda_array_interface__"):
        return _of_cuda_interface(value)
    if hasattr(value, "__array_interface__"):
        return _of_array_interface(value)
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value, torch)
    return None


def allocate(shape: tuple[int, ...], dtype: str, like: TensorView | None, device: str) -> TensorView:
    """An uninitialised tensor of `like`'s library and device; without `like`, of NumPy on the CPU, of torch on a
    GPU.
    """
    library = like.library if like else ("numpy" if device == "cpu" else "torch")
    if dtype in PACKED_DTYPES:
        return unpacked(allocate((*shape[:-1], shape[-1] // 2), _byte_of(dtype, library), like, device), dtype)
    if library == "torch":
        try:
            import torch
        except ImportError:
            message = "outputs on a GPU are torch tensors, and torch is not installed"
            raise ArgumentError("T2C-R100", message, help="pass the outputs as arguments") from None
        where = like.device if like else torch.device("cuda", torch.cuda.current_device())
        return _of_torch(torch.empty(shape, dtype=getattr(torch, dtype), device=where), torch)
    import numpy

    return _of_numpy(numpy.empty(shape, dtype=numpy_dtype(dtype)))


def _byte_of(dtype: str, library: str) -> str:
    """A library's dtype for a byte of two elements."""
    name = PACKED_DTYPES[dtype]
    known = hasattr(sys.modules.get("torch"), name) if library == "torch" else name in _TYPESTRS.values()
    return name if known else "uint8"


def unpacked(view: TensorView, dtype: str) -> TensorView:
    """The elements of `dtype` in a tensor of bytes, two per byte along the last dimension."""
    *outer, last = view.shape
    strides = tuple(2 * stride for stride in view.strides[:-1])
    return view._replace(shape=(*outer, 2 * last), strides=(*strides, *view.strides[-1:]), dtype=dtype)


def numpy_dtype(name: str) -> Any:
    """NumPy's dtype of that name; bfloat16 and 8-bit floats come from ml_dtypes."""
    import numpy

    if name in _ML_DTYPES:
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, name))
    return numpy.dtype(name)


def _of_numpy(array: Any) -> TensorView:
    item_bytes = array.dtype.itemsize
    address, read_only = array.__array_interface__["data"]
    return TensorView(
        address=address,
        shape=array.shape,
        strides=tuple(stride // item_bytes for stride in array.strides) if item_bytes else (),
        dtype=_name_of(array.dtype),
        bytes=array.nbytes,
        device="cpu",
        contiguous=array.flags.c_contiguous,
        writable=not read_only,
        library="numpy",
        owner=array,
    )


@functools.lru_cache
def _name_of(dtype: Any) -> str:
    """The name of a NumPy or torch dtype, cached."""
    name = getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")
    return name if getattr(dtype, "isnative", True) else f"byte-swapped {name}"


def _of_torch(tensor: Any, torch: Any) -> TensorView:
    if tensor.layout is not torch.strided:
        raise ArgumentError("T2C-R101", f"a tensor of layout {tensor.layout} is not strided memory", help=".to_dense()")
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        raise ArgumentError(
            "T2C-R101",
            "a tensor of torch.func (vmap, grad, jvp) has no memory of its own",
            help="call the kernel outside of it, or give the operator of kernel.as_torch_op a rule for it "
            "(torch.library.register_vmap, register_autograd)",
        )
    dispatches = type(tensor).__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl
    if dispatches or tensor.device.type == "meta":
        what = type(tensor).__name__ if dispatches else "tensor on the device meta"
        raise ArgumentError(
            "T2C-R101",
            f"a {what} has no memory of its own, only a shape and a type",
            help='under torch.compile and export, call the operator that kernel.as_torch_op("library::name") makes',
        )
    lazy = tensor.is_conj() or tensor.is_neg()
    device = tensor.device.type
    if device == "cuda":
        device = f"cuda:{tensor.device.index}"
    return TensorView(
        address=tensor.data_ptr(),
        shape=tuple(tensor.shape),
        strides=tensor.stride(),
        dtype=f"lazily negated {_name_of(tensor.dtype)}" if lazy else _name_of(tensor.dtype),
        bytes=tensor.numel() * tensor.element_size(),
        device=device,
        contiguous=tensor.is_contiguous(),
        # torch, too, rejects in-place writes to a leaf that requires a gradient.
        writable=not (tensor.requires_grad and tensor.is_leaf and torch.is_grad_enabled()),
        library="torch",
        owner=tensor,
    )


def _of_array_interface(value: Any) -> TensorView:
    import numpy

    return _of_numpy(numpy.asarray(value))


def _of_cuda_interface(value: Any) -> TensorView:
    """Tensors of cupy, numba and others. Source: numba.readthedocs.io, CUDA Array Interface, version 3."""
    interface = value.__cuda_array_interface__
    address, read_only = interface["data"]
    shape, typestr = tuple(interface["shape"]), interface["typestr"]
    item_bytes = int(typestr[2:])
    dense = dense_strides(shape)
    given = interface.get("strides")
    strides = tuple(stride // item_bytes for stride in given) if given else dense
    return TensorView(
        address=address,
        shape=shape,
        strides=strides,
        dtype=_TYPESTRS.get(typestr[1:], typestr),
        bytes=item_bytes * math.prod(shape),
        device=f"cuda:{getattr(getattr(value, 'device', None), 'id', 0)}",
        contiguous=all(a == b or n <= 1 for a, b, n in zip(strides, dense, shape, strict=True)) or 0 in shape,
        writable=not read_only,
        library="torch",
        owner=value,
    )


def _of_dlpack(value: Any, torch: Any) -> TensorView:
    if torch is not None:
        return _of_torch(torch.from_dlpack(value), torch)
    import numpy

    return _of_numpy(numpy.from_dlpack(value))


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous tensor, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
