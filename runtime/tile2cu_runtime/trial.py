"""A trial call of a kernel with random data: tensors from a seed, one call, a summary of the results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tile2cu_runtime.arguments import no_size
from tile2cu_runtime.errors import ArgumentError
from tile2cu_runtime.kernel import TENSORS_ON, Kernel
from tile2cu_runtime.spec import Manifest, ScalarArgument, SizeArgument, TensorArgument
from tile2cu_runtime.tensors import numpy_dtype

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[Any]

# Random integers are small, so that accumulations stay exact: -4 ... 4, or 0 ... 8 if unsigned.
_LARGEST_INTEGER = 4


SUMMARY_HEADING = f"{'tensor':<12} {'access':<9} {'type':<13} {'shape':<20} {'sha256':<12}  values"


@dataclass(frozen=True, kw_only=True)
class TensorSummary:
    """A summary of a tensor. `sha256` is of its bytes; minimum, maximum and mean are of its finite elements, in
    float64.
    """

    name: str
    access: str
    dtype: str
    shape: tuple[int, ...]
    sha256: str
    smallest: float
    largest: float
    mean: float
    not_finite: int

    def __str__(self) -> str:
        odd = f", {self.not_finite} not finite" if self.not_finite else ""
        figures = f"{self.smallest:.6g} ... {self.largest:.6g}, mean {self.mean:.6g}{odd}"
        return f"{self.name:<12} {self.access:<9} {self.dtype:<13} {self.shape!s:<20} {self.sha256[:12]}  {figures}"


def call_numbers(manifest: Manifest, given: Mapping[str, int | float], tensors: Mapping[str, Array]) -> dict[str, Any]:
    """The sizes and scalars of a call by name: as given, or sizes from the shapes of given tensors.

    Errors: T2C-R100 for an unknown name, T2C-R105 for a missing one.
    """
    numbers: list[SizeArgument | ScalarArgument] = list(manifest.sizes)
    numbers += [each for each in manifest.called if isinstance(each, ScalarArgument)]
    if unknown := sorted(given.keys() - {each.name for each in numbers}):
        names = ", ".join(each.name for each in numbers) or "none"
        raise no_size(manifest, unknown[0], names)
    told = {
        extent.text: tensors[tensor.name].shape[dimension]
        for tensor in manifest.tensors
        if tensor.name in tensors and tensors[tensor.name].ndim == len(tensor.shape)
        for dimension, extent in enumerate(tensor.shape)
        if extent.is_plain
    }
    found: dict[str, Any] = {**told, **given}
    if missing := [each.name for each in numbers if each.name not in found]:
        wanted = " ".join(f"--size {name}=..." for name in missing)
        raise ArgumentError(
            "T2C-R105",
            f"the size `{missing[0]}` is not given",
            argument=missing[0],
            help=f"give {wanted}, or tensors whose shapes determine it",
        )
    return {each.name: found[each.name] for each in numbers}


def made_up_tensors(manifest: Manifest, numbers: Mapping[str, Any], seed: int) -> dict[str, Array]:
    """Every tensor that the kernel reads, by name: normally distributed floats, small integers. Deterministic for a
    seed.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    return {tensor.name: _random(rng, tensor, numbers) for tensor in manifest.tensors if tensor.access != "write"}


def _random(rng: np.random.Generator, tensor: TensorArgument, numbers: Mapping[str, Any]) -> Array:
    shape, dtype = shape_of(tensor, numbers), numpy_dtype(tensor.dtype)
    if tensor.dtype == "bool":
        return rng.integers(0, 2, shape).astype(dtype)
    if tensor.dtype.startswith(("int", "uint")):
        low = 0 if tensor.dtype.startswith("u") else -_LARGEST_INTEGER
        return rng.integers(low, low + 2 * _LARGEST_INTEGER + 1, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def shape_of(tensor: TensorArgument, numbers: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(extent.evaluate(numbers) for extent in tensor.shape)


def try_kernel(kernel: Kernel, tensors: Mapping[str, Array], numbers: Mapping[str, Any]) -> dict[str, Array]:
    """Calls the kernel on NumPy arrays, on any device; returns all its tensors after the call.

    Outputs are zeros before the call, or uninitialised if the CPU engine checks reads of such memory.
    Errors: those of the call.
    """
    import numpy as np

    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    written = [tensor for tensor in kernel.manifest.tensors if tensor.access == "write"]
    allocates = kernel.device == "cpu" and kernel.is_checked
    for tensor in written:
        if not (allocates and tensor.name in kernel.manifest.output_names):
            arrays.setdefault(tensor.name, np.zeros(shape_of(tensor, numbers), numpy_dtype(tensor.dtype)))
    on_gpu = TENSORS_ON[kernel.device] != "cpu"
    passed = {name: to_torch(array, "cuda") for name, array in arrays.items()} if on_gpu else arrays
    result = kernel(**passed, **numbers)
    if on_gpu:
        arrays = {name: _from_gpu(tensor, arrays[name]) for name, tensor in passed.items()}
    made = [kernel.manifest.arguments[index].name for index in kernel.manifest.outputs]
    made = [name for name in made if name not in passed]
    return arrays | dict(zip(made, result if len(made) > 1 else (result,), strict=False))


def summaries(manifest: Manifest, tensors: Mapping[str, Array]) -> Iterator[TensorSummary]:
    """One summary per tensor, in the manifest's order."""
    import numpy as np

    for tensor in manifest.tensors:
        array = tensors[tensor.name]
        wide = array.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        yield TensorSummary(
            name=tensor.name,
            access=tensor.access,
            dtype=tensor.dtype,
            shape=array.shape,
            sha256=hashlib.sha256(array.tobytes()).hexdigest(),
            smallest=float(finite.min(initial=np.inf)) if finite.size else 0.0,
            largest=float(finite.max(initial=-np.inf)) if finite.size else 0.0,
            mean=float(finite.mean()) if finite.size else 0.0,
            not_finite=int(wide.size - finite.size),
        )


def to_torch(array: Array, device: str = "cpu") -> Any:
    """A torch tensor; types that torch does not accept from NumPy are passed as bytes."""
    import torch

    raw = torch.from_numpy(array.view("uint8")) if array.size else torch.empty(array.shape)
    return raw.to(device).view(getattr(torch, array.dtype.name)).reshape(array.shape)


def _from_gpu(tensor: Any, like: Array) -> Array:
    import torch

    raw = tensor.contiguous().view(torch.uint8) if like.size else tensor
    return raw.cpu().numpy().view(like.dtype).reshape(like.shape) if like.size else like
