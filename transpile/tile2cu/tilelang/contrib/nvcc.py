"""`tilelang.contrib.nvcc`: the GPU's compute capability."""

from typing import Any

from tile2cu.tilelang.symbols import others
from tile2cu_runtime.device import compute_capability


def get_target_compute_version(target: Any = None) -> str:
    """The compute capability of the GPU, "9.0" for an H200. Raises ValueError where there is none."""
    found = compute_capability()
    if found is None:
        raise ValueError("this machine has no NVIDIA GPU")
    return f"{found[0]}.{found[1]}"


def parse_compute_version(version: str) -> tuple[int, int]:
    """The two numbers of a compute capability."""
    major, _, minor = version.partition(".")
    return int(major), int(minor or 0)


def have_tensorcore(*arguments: Any, **options: Any) -> bool:
    """Whether the GPU has Tensor Cores."""
    return (compute_capability() or (0, 0)) >= (7, 0)


__getattr__ = others(__name__)
