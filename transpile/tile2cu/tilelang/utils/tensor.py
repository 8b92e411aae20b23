"""`tilelang.utils.tensor`: comparing tensors, and making them up."""

from collections.abc import Callable
from typing import Any

from tile2cu.tilelang.supply import TensorSupplyType, tensor_of
from tile2cu.tilelang.symbols import DType, others

__all__ = ["TensorSupplyType", "get_tensor_supply", "map_torch_type", "torch_assert_close"]


def map_torch_type(value: Any) -> Any:
    """torch's type of that name."""
    return DType(value).as_torch()


def get_tensor_supply(supply_type: TensorSupplyType = TensorSupplyType.Auto) -> Callable[[Any], Any]:
    """A function that makes up a tensor for an argument of a kernel, on the CPU where there is no GPU."""

    def supply(argument: Any) -> Any:
        import torch

        shape = tuple(int(str(extent)) for extent in argument.shape)
        return tensor_of(argument.dtype, shape, supply_type, "cuda" if torch.cuda.is_available() else "cpu")

    return supply


def torch_assert_close(
    tensor_a: Any,
    tensor_b: Any,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 0.001,
    verbose: bool = False,
    equal_nan: bool = True,
    base_name: str = "LHS",
    ref_name: str = "RHS",
) -> bool:
    """Whether at most a part of the elements differ by more than `atol + rtol * |tensor_b|`. Raises AssertionError."""
    import torch

    if tuple(tensor_a.shape) != tuple(tensor_b.shape):
        raise AssertionError(f"shapes differ: {base_name} {tuple(tensor_a.shape)}, {ref_name} {tuple(tensor_b.shape)}")
    one, other = tensor_a.to(torch.float64), tensor_b.to(torch.float64).to(tensor_a.device)
    wrong = ~torch.isclose(one, other, rtol=rtol, atol=atol, equal_nan=equal_nan)
    count, allowed = int(wrong.sum()), int(max_mismatched_ratio * max(wrong.numel(), 1))
    if verbose:
        print(f"{count} of {wrong.numel()} elements differ; {allowed} may")
    if count > allowed:
        worst = float((one - other).abs().nan_to_num(float("inf")).max())
        raise AssertionError(
            f"{count} of {wrong.numel()} elements of {base_name} and {ref_name} differ by more than rtol={rtol}, "
            f"atol={atol}; {allowed} may. The largest difference is {worst:g}"
        )
    return True


__getattr__ = others(__name__)
