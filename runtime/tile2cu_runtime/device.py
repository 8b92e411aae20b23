"""Devices of this machine: NVIDIA GPUs and their compute capability, AMD GPUs and their architectures."""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from pathlib import Path

_NO_GPU = "cuda:sm_80"
# CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR in cuda.h.
_MAJOR, _MINOR = 75, 76
_TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")


def compute_capability(index: int = 0) -> tuple[int, int] | None:
    """The compute capability of an NVIDIA GPU of this machine, (9, 0) for an H200; None if there is none."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.version.cuda is not None:
        if not torch.cuda.is_available() or index >= torch.cuda.device_count():
            return None
        major, minor = torch.cuda.get_device_capability(index)
        return major, minor
    return _driver_capability(index)


def amd_architectures(topology: Path = _TOPOLOGY) -> tuple[str, ...]:
    """The architectures of this machine's AMD GPUs, such as gfx942, in the driver's order.

    Source: Linux, amdkfd, kfd_topology.c: gfx_target_version is 90402 for gfx942, 0 for a CPU; ROCm prints the last two
    digits, the stepping, in hexadecimal.
    """
    versions = []
    for node in sorted(topology.glob("*/properties"), key=lambda path: int(path.parent.name)):
        found = re.search(r"^gfx_target_version (\d+)$", node.read_text(encoding="utf-8"), re.MULTILINE)
        versions.append(int(found[1]) if found else 0)
    return tuple(f"gfx{each // 10000}{each // 100 % 100}{each % 100:x}" for each in versions if each)


def auto_target() -> str:
    """The target for this machine: `cuda:sm_90a` on a 9.0 GPU, else `cuda:sm_80`, which the CPU engine also runs."""
    return "cuda:sm_90a" if compute_capability() == (9, 0) else _NO_GPU


def can_run(architecture: str, capability: tuple[int, int]) -> bool:
    """Whether code for sm_80, sm_90a, ... runs on a GPU of that compute capability.

    Source: PTX ISA, target directives: sm_NN code runs on NN and later, sm_NNa code on NN only.
    """
    number = architecture.removeprefix("sm_")
    device = capability[0] * 10 + capability[1]
    if number.endswith("a"):
        return number[:-1].isdigit() and int(number[:-1]) == device
    return number.isdigit() and int(number) <= device


@functools.lru_cache
def _driver_capability(index: int) -> tuple[int, int] | None:
    """The same from the driver, without torch."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), index):
        return None
    for value, attribute in ((major, _MAJOR), (minor, _MINOR)):
        if driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device):
            return None
    return major.value, minor.value
