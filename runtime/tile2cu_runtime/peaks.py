"""What GPUs reach at most, by the names that their drivers give: dense MMA throughput and DRAM bandwidth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Peak:
    """`tflops` of MMAs by the operand type as PTX spells it, at the boost clock; `gbytes_per_s` of DRAM."""

    tflops: Mapping[str, float]
    gbytes_per_s: float


def _hopper(half: float) -> Mapping[str, float]:
    eight = dict.fromkeys(("e4m3", "e5m2", "s8", "u8"), 2 * half)
    return {"f16": half, "bf16": half, "tf32": half / 2, "f64": half * 67 / 989.4, **eight}


_A100 = Peak(
    tflops={"f16": 312.0, "bf16": 312.0, "tf32": 156.0, "s8": 624.0, "u8": 624.0, "f64": 19.5}, gbytes_per_s=1555.0
)
# The first name that begins so counts. [NVIDIA A100, H100, H200, L40S and B200, AMD Instinct MI300X datasheets, dense]
_PEAKS: tuple[tuple[str, Peak], ...] = (
    ("NVIDIA A100-SXM4-80GB", replace(_A100, gbytes_per_s=2039.0)),
    ("NVIDIA A100 80GB PCIe", replace(_A100, gbytes_per_s=1935.0)),
    ("NVIDIA A100", _A100),
    ("NVIDIA H100 PCIe", Peak(tflops=_hopper(756.0), gbytes_per_s=2039.0)),
    ("NVIDIA H100 80GB HBM3", Peak(tflops=_hopper(989.4), gbytes_per_s=3352.0)),
    ("NVIDIA H200", Peak(tflops=_hopper(989.4), gbytes_per_s=4800.0)),
    ("NVIDIA L40S", Peak(tflops={"f16": 362.0, "bf16": 362.0, "tf32": 183.0, "e4m3": 733.0}, gbytes_per_s=864.0)),
    ("NVIDIA B200", Peak(tflops={"f16": 2250.0, "bf16": 2250.0, "e4m3": 4500.0, "e5m2": 4500.0}, gbytes_per_s=8000.0)),
    ("AMD Instinct MI300X", Peak(tflops={"f16": 1307.4, "bf16": 1307.4, "fp8": 2614.9}, gbytes_per_s=5300.0)),
)


# The largest GPU of a target, whose SMs chips.py has.
_GPUS: Mapping[str, str] = {
    "cuda:sm_80": "NVIDIA A100-SXM4-80GB",
    "cuda:sm_89": "NVIDIA L40S",
    "cuda:sm_90a": "NVIDIA H100 80GB HBM3",
    "cuda:sm_100a": "NVIDIA B200",
    "hip:gfx942": "AMD Instinct MI300X",
}


def gpu_of(target: str) -> str:
    """The name of a target's GPU whose peaks are known; empty where there is none."""
    return _GPUS.get(target, "")


def peak_of(gpu: str) -> Peak | None:
    """The peaks of a GPU by its name, None for one that is not in the table."""
    return next((peak for name, peak in _PEAKS if gpu.startswith(name)), None)


def mma_tflops(peak: Peak, instructions: Iterable[str]) -> float | None:
    """The lowest peak of these MMA instructions, as the manifest's facts name them; None without a known one."""
    known = [peak.tflops[operand] for each in instructions if (operand := _operand(each)) in peak.tflops]
    return min(known, default=None)


def _operand(instruction: str) -> str:
    """The type of A: wgmma.m64n256k16.f32.f16.f16 and mma.m16n8k16.f32.f16.f16.f32 name it after the result's."""
    if instruction.startswith("v_mfma"):
        return instruction.rpartition("_")[2]
    parts = instruction.split(".")
    return parts[3] if len(parts) > 3 else ""
