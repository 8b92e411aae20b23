"""Programs written for a GPU on the CPU engine: tensors that they ask of the device "cuda" are the CPU's.

For `python -m tile2cu.tilelang --device cpu`. Nothing claims that a GPU is there: torch.cuda.is_available() stays
false, and what programs ask of torch's device, beyond synchronising, fails as on any machine without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def on_cpu(value: Any) -> Any:
    """A device of a call: the CPU instead of a GPU."""
    import torch

    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return "cpu" if isinstance(value, str) and value.partition(":")[0] == "cuda" else value


def install() -> Callable[[], None]:
    """Maps GPU tensors to the CPU's from now on; gives the function that ends it."""
    import torch
    from torch.overrides import TorchFunctionMode

    moves = (torch.Tensor.cuda, torch.Tensor.cpu)

    class OnCpu(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is moves[0]:
                return args[0]
            named = {name: on_cpu(value) if name == "device" else value for name, value in (kwargs or {}).items()}
            if func is torch.Tensor.to or func is torch.set_default_device:
                args = tuple(map(on_cpu, args))
            return func(*args, **named)

    mode: Any = OnCpu()
    mode.__enter__()
    replaced = {name: getattr(torch.cuda, name) for name in ("synchronize", "empty_cache", "set_device", "init")}
    for name in replaced:
        setattr(torch.cuda, name, lambda *arguments, **options: None)

    def end() -> None:
        mode.__exit__(None, None, None)
        for name, function in replaced.items():
            setattr(torch.cuda, name, function)

    return end
