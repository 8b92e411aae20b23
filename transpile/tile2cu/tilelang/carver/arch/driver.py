"""`tilelang.carver.arch.driver`: what programs ask of their GPU."""

from typing import Any

from tile2cu.targets import find
from tile2cu.tilelang.options import options_of


def get_num_sms(device: Any = None) -> int:
    """The SMs of the GPU, or those of the target where there is none."""
    import torch

    if torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(0).multi_processor_count)
    from tile2cu_runtime.device import auto_target

    target = options_of().target
    return find(auto_target() if target == "auto" else target).multiprocessors
