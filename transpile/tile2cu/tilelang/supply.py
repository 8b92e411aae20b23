"""Made-up tensors for profilers and tuners, by TileLang's names for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from tile2cu_runtime.errors import ArgumentError
from tile2cu_runtime.kernel import TENSORS_ON, Kernel
from tile2cu_runtime.spec import PACKED_DTYPES, ScalarArgument, TensorArgument
from tile2cu_runtime.trial import shape_of


class TensorSupplyType(Enum):
    """What a made-up tensor holds. Auto: floats between -1 and 1, integers from -2 to 2."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


Supply = Callable[[TensorArgument, tuple[int, ...], str], Any]


def made_up(kernel: Kernel, supply: TensorSupplyType, sizes: Mapping[str, int] | None = None) -> list[Any]:
    """The arguments of a call, in order, without the outputs that it allocates; scalars are 1.

    Errors: T2C-R105 for a size that is open and not in `sizes`.
    """
    manifest, device = kernel.manifest, TENSORS_ON[kernel.device]
    numbers = {str(name): size for name, size in (sizes or {}).items()}
    missing = next((size.name for size in manifest.sizes if size.name not in numbers), None)
    if missing is not None:
        raise ArgumentError(
            "T2C-R105",
            f"the size `{missing}` of {manifest.kernel} is open",
            argument=missing,
            help=f"give input_tensors, or dynamic_symbolic_constraints={{'{missing}': ...}}",
        )
    called = [each for each in manifest.called if each.name not in manifest.output_names]
    scalars = {"float": 1.0}
    return [
        scalars.get(each.dtype[:5], 1)
        if isinstance(each, ScalarArgument)
        else tensor_of(each.dtype, shape_of(each, numbers), supply, device)
        for each in called
    ]


def tensor_of(dtype: str, shape: tuple[int, ...], supply: TensorSupplyType, device: str) -> Any:
    """A torch tensor of that type and shape. Elements of 4 bits are two to a byte."""
    import torch

    if dtype in PACKED_DTYPES:
        return torch.randint(0, 256, (*shape[:-1], shape[-1] // 2), dtype=torch.uint8, device=device).view(torch.int8)
    kind = getattr(torch, dtype)
    match supply:
        case TensorSupplyType.Zero:
            return torch.zeros(shape, dtype=kind, device=device)
        case TensorSupplyType.One:
            return torch.ones(shape, dtype=kind, device=device)
    if dtype == "bool":
        return torch.randint(0, 2, shape, device=device).bool()
    if not kind.is_floating_point:
        low, high = (0, 3) if dtype.startswith("u") else (-2, 3)
        return torch.randint(low, high, shape, device=device).to(kind)
    wide = torch.empty(shape, dtype=torch.float32, device=device)
    match supply:
        case TensorSupplyType.Integer:
            return torch.randint(-2, 3, shape, device=device).to(kind)
        case TensorSupplyType.Normal:
            return wide.normal_(-1.0, 1.0).to(kind)
        case TensorSupplyType.Randn:
            return wide.normal_().to(kind)
        case _:
            return wide.uniform_(-1.0, 1.0).to(kind)
