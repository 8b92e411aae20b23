"""A kernel timed on a GPU beside its peers, or, where there is none, the work of a call without times."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tile2cu_runtime.errors import DeviceError, OptionError
from tile2cu_runtime.peaks import mma_tflops, peak_of
from tile2cu_runtime.spec import DTYPE_BYTES, PACKED_DTYPES, Manifest, TensorArgument
from tile2cu_runtime.timing import Call, Gpu, Timer, TorchGpu, interleaved
from tile2cu_runtime.trial import call_numbers, made_up_tensors, shape_of

if TYPE_CHECKING:
    from tile2cu_runtime.kernel import Kernel

# Given the tensors that the kernel reads, calls by label. What they prepare before they return is not timed.
PeersOf = Callable[..., Mapping[str, Call]]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How times are taken: `rounds` of interleaved medians; see Timer for `burst`, TorchGpu for `clean`.

    With `graph` each call is replayed from a CUDA graph.
    """

    rounds: int = 3
    burst: bool = False
    clean: bool = False
    graph: bool = False


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one call does at least. `mma_flops` is None if unknown; `bytes_moved` by tensor, once for each access."""

    mma_flops: int | None
    bytes_moved: tuple[tuple[str, int], ...]

    @property
    def total_bytes(self) -> int:
        return sum(count for _, count in self.bytes_moved)


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """The least time of the work on a GPU. `bound` is "mma" or "dram", whichever takes longer."""

    mma_ms: float
    dram_ms: float
    tflops: float | None
    gbytes_per_s: float

    @property
    def ms(self) -> float:
        return max(self.mma_ms, self.dram_ms)

    @property
    def bound(self) -> str:
        return "mma" if self.mma_ms > self.dram_ms else "dram"

    def as_data(self) -> dict[str, Any]:
        """The roofline as JSON takes it."""
        return {"ms": self.ms, "bound": self.bound, "tflops": self.tflops, "gbytes_per_s": self.gbytes_per_s}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One implementation: the median of its rounds; `spread` is (slowest - fastest) / median.

    `roofline` is the fraction of the least time. `difference` is the norm of its result minus the kernel's over the
    norm of the kernel's; None where a peer gives no result of the kernel's shape.
    """

    name: str
    ms: float
    spread: float
    tflops: float | None
    gbytes_per_s: float
    roofline: float | None
    times_kernel: float
    difference: float | None


@dataclass(frozen=True, kw_only=True)
class Bench:
    """`measured` has the kernel first; it is empty where nothing was timed, and `roofline` None for an unknown GPU."""

    kernel: str
    target: str
    device: str
    gpu: str
    sizes: tuple[tuple[str, Any], ...]
    work: Work
    timing: Timing
    roofline: Roofline | None = None
    measured: tuple[Measured, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """The report as JSON takes it."""
        work = self.work
        intensity = work.mma_flops / work.total_bytes if work.mma_flops and work.total_bytes else None
        return {
            "kernel": self.kernel,
            "target": self.target,
            "device": self.device,
            "gpu": self.gpu,
            "sizes": dict(self.sizes),
            "work": {
                "mma_flops": work.mma_flops,
                "bytes": dict(work.bytes_moved),
                "total_bytes": work.total_bytes,
                "flops_per_byte": intensity,
            },
            "timing": asdict(self.timing),
            "roofline": self.roofline.as_data() if self.roofline else None,
            "measured": [asdict(each) for each in self.measured],
        }

    def __str__(self) -> str:
        sizes = "".join(f", {name} = {value}" for name, value in self.sizes)
        work = self.work
        flops = "not counted" if work.mma_flops is None else f"{work.mma_flops:,} operations"
        tensors = ", ".join(f"{name} {count:,}" for name, count in work.bytes_moved)
        lines = [
            f"{self.kernel} for {self.target} on {self.gpu or self.device}{sizes}",
            f"  MMA work  {flops}",
            f"  tensors   {work.total_bytes:,} bytes ({tensors})",
        ]
        if self.roofline:
            lines.append(f"  roofline  {self.roofline.ms * 1e3:.1f} us, bound by {self.roofline.bound}")
        lines += map(_line, self.measured)
        if not self.measured:
            lines.append(f'  no times: device "{self.device}" is no GPU')
        return "\n".join(lines)


def _line(each: Measured) -> str:
    tflops = "" if each.tflops is None else f"{each.tflops:8.1f} TFLOP/s"
    roofline = "" if each.roofline is None else f"  {each.roofline:4.0%} of roofline"
    difference = "" if each.difference is None else f"  difference {each.difference:.1e}"
    return (
        f"  {each.name:24} {each.ms * 1e3:10.1f} us {tflops} {each.gbytes_per_s:8.0f} GB/s{roofline}  "
        f"{each.times_kernel:5.2f} x the kernel's time  spread {each.spread:.1%}{difference}"
    )


class Machine(Protocol):
    """Where the tensors are, and what times the calls."""

    name: str
    gpu: Gpu

    def tensor(self, spec: TensorArgument, array: Any) -> Any:
        """A tensor with the array's content, on the GPU."""

    def difference(self, found: Any, expected: Any) -> float | None:
        """As in Measured."""


class TorchMachine:
    """torch's current CUDA device."""

    def __init__(self, timing: Timing) -> None:
        """Errors: T2C-R020 without torch, or where it finds no GPU."""
        try:
            import torch
        except ImportError:
            help = "pip install torch, of a build for the GPU"
            raise DeviceError("T2C-R020", "times are taken by torch, which is not installed", help=help) from None
        if not torch.cuda.is_available():
            help = "nvidia-smi -L lists GPUs; torch may be a build for CPUs"
            raise DeviceError("T2C-R020", "torch finds no GPU here", help=help)
        self.name: str = torch.cuda.get_device_name()
        self.gpu: Gpu = TorchGpu(clean=timing.clean)

    def tensor(self, spec: TensorArgument, array: Any) -> Any:
        from tile2cu_runtime.trial import to_torch

        return to_torch(array, "cuda")

    def difference(self, found: Any, expected: Any) -> float | None:
        import torch

        if not isinstance(found, torch.Tensor) or found.numel() != expected.numel():
            return None
        expected = expected.double()
        norm = float(expected.norm())
        return float((found.reshape(expected.shape).double() - expected).norm()) / max(norm, 1e-30)


def bench(
    kernel: Kernel,
    sizes: Mapping[str, int | float],
    *,
    peers: Iterable[PeersOf] = (),
    mma_flops: int | None = None,
    timing: Timing | None = None,
    machine: Machine | None = None,
) -> Bench:
    """Times the kernel and its peers on made-up tensors, or counts its work where it runs on no GPU.

    `mma_flops` is the work that rates are computed from, if not what the program states (Kernel.mma_flops).
    Errors: T2C-R100 and T2C-R105 for sizes; T2C-R030 for less than one round; those of a call.
    """
    timing = timing or Timing()
    if timing.rounds < 1:
        raise OptionError("T2C-R030", f"{timing.rounds} rounds are no measurement", help="rounds=3")
    manifest = kernel.manifest
    numbers = call_numbers(manifest, sizes, {})
    if mma_flops is None and kernel.mma_flops is not None:
        mma_flops = kernel.mma_flops(numbers)
    work = work_of(manifest, numbers, mma_flops)
    on_gpu = kernel.device in ("cuda", "hip")
    if on_gpu:
        machine = machine or TorchMachine(timing)
    gpu = machine.name if on_gpu and machine else ""
    roofline = roofline_of(manifest, work, gpu)
    measured = _measured(kernel, numbers, peers, work, roofline, timing, machine) if on_gpu and machine else ()
    return Bench(
        kernel=manifest.kernel,
        target=manifest.target,
        device=kernel.device,
        gpu=gpu,
        sizes=tuple(numbers.items()),
        work=work,
        timing=timing,
        roofline=roofline,
        measured=measured,
    )


def work_of(manifest: Manifest, numbers: Mapping[str, Any], mma_flops: int | None) -> Work:
    """What a call with these sizes and scalars does at least; `mma_flops` None if unknown."""
    return Work(mma_flops=mma_flops, bytes_moved=tuple(_bytes_moved(manifest, numbers)))


def _bytes_moved(manifest: Manifest, numbers: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    for tensor in manifest.tensors:
        elements = math.prod(shape_of(tensor, numbers))
        # Shapes count elements, and two elements of a packed type are one byte.
        each = DTYPE_BYTES.get(tensor.dtype, 1) if tensor.dtype not in PACKED_DTYPES else 0.5
        yield tensor.name, int(elements * each) * (2 if tensor.access == "readwrite" else 1)


def roofline_of(manifest: Manifest, work: Work, gpu: str) -> Roofline | None:
    """The least time of the work on a GPU, by its name; None for one whose peaks are not known."""
    peak = peak_of(gpu)
    if peak is None:
        return None
    instructions = [fact.value for fact in manifest.facts if fact.what == "instruction"]
    tflops = mma_tflops(peak, instructions)
    mma_ms = work.mma_flops / tflops * 1e-9 if work.mma_flops and tflops else 0.0
    dram_ms = work.total_bytes / peak.gbytes_per_s * 1e-6
    return Roofline(mma_ms=mma_ms, dram_ms=dram_ms, tflops=tflops, gbytes_per_s=peak.gbytes_per_s)


def _measured(
    kernel: Kernel,
    numbers: Mapping[str, Any],
    peers: Iterable[PeersOf],
    work: Work,
    roofline: Roofline | None,
    timing: Timing,
    machine: Machine,
) -> tuple[Measured, ...]:
    import numpy as np

    from tile2cu_runtime.tensors import numpy_dtype

    manifest = kernel.manifest
    arrays = made_up_tensors(manifest, numbers, 0)
    for spec in manifest.tensors:
        if spec.name not in arrays:
            arrays[spec.name] = np.zeros(shape_of(spec, numbers), numpy_dtype(spec.dtype))
    tensors = {spec.name: machine.tensor(spec, arrays[spec.name]) for spec in manifest.tensors}
    read = [tensors[spec.name] for spec in manifest.tensors if spec.access != "write"]
    calls: dict[str, Call] = {manifest.kernel: lambda: kernel(**tensors, **numbers)}
    for peers_of in peers:
        calls |= peers_of(*read)
    differences = _differences(manifest, calls, tensors, machine)
    if timing.graph:
        calls = {label: machine.gpu.graph(call) for label, call in calls.items()}
    times = interleaved(calls, Timer(machine.gpu, burst=timing.burst), timing.rounds)
    medians = {label: statistics.median(each) for label, each in times.items()}
    return tuple(
        Measured(
            name=label,
            ms=ms,
            spread=(max(times[label]) - min(times[label])) / ms,
            tflops=work.mma_flops / ms * 1e-9 if work.mma_flops else None,
            gbytes_per_s=work.total_bytes / ms * 1e-6,
            roofline=roofline.ms / ms if roofline else None,
            times_kernel=ms / medians[manifest.kernel],
            difference=differences.get(label),
        )
        for label, ms in medians.items()
    )


def _differences(
    manifest: Manifest, calls: Mapping[str, Call], tensors: Mapping[str, Any], machine: Machine
) -> dict[str, float | None]:
    """Calls everything once: the kernel, and each peer, whose result is compared with the kernel's first output."""
    written = [tensor.name for tensor in manifest.tensors if tensor.written]
    found: dict[str, float | None] = {}
    for label, call in calls.items():
        result = call()
        if label != manifest.kernel:
            found[label] = machine.difference(result, tensors[written[0]]) if written else None
    return found
