"""Loading an emitted kernel: from a folder with .cu, .h and .json to a Python callable."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tile2cu_runtime import binding, hip
from tile2cu_runtime import device as devices
from tile2cu_runtime.compile import Build, cuda_build, host_build, ptx_build
from tile2cu_runtime.engine import EngineOptions
from tile2cu_runtime.errors import CompileError, DeviceError, ManifestError, OptionError
from tile2cu_runtime.kernel import Device, Kernel, Run, gpu_kernel
from tile2cu_runtime.report import SourceMap
from tile2cu_runtime.spec import Manifest, read_manifest

__all__ = ["Kernel", "load_kernel"]


def load_kernel(
    path: str | Path,
    *,
    device: Device | None = None,
    check: bool = False,
    statistics: bool = False,
    schedules: Sequence[str] = ("round-robin",),
    landing: str = "late",
    preempt: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    on_finding: Literal["raise", "report"] = "raise",
    on_ignored: Literal["raise", "warn"] = "raise",
    source: str | Path | None = None,
) -> Kernel:
    """Loads an emitted kernel from its folder, its manifest or its .cu file; builds it unless it is cached.

    `device`: "cpu" runs the source on the CPU engine, "cuda" and "hip" on a GPU; "sim" simulates the AMD code object
    and "ptx" nvcc's PTX instruction by instruction. Default: a GPU of this machine that runs the target's code, else
    the CPU; with `check` the CPU. `check` detects races, accesses out of bounds or of uninitialised memory, and
    synchronisation errors, on the CPU under each of the `schedules` ("round-robin", "reverse", "shuffle"); findings
    raise CheckError, or are only stored in `.report` with `on_finding="report"`. `statistics` counts bank conflicts and
    sectors. A directive or instruction that ptxas ignored, as setmaxnreg, is the error T2C-R012, or with
    `on_ignored="warn"` a RuntimeWarning: the kernel is right and slow. `landing`, `preempt`, `seed` and `workers` are
    those of EngineOptions. `source` is the Python file, if it is neither in the manifest's folder nor in the current
    one: reports then show its lines.
    Errors: ManifestError, OptionError, DeviceError, CompileError.
    """
    manifest, folder = manifest_of(path), _manifest_path(Path(path)).parent
    if on_finding not in ("raise", "report") or not schedules:
        raise OptionError("T2C-R030", '`on_finding` must be "raise" or "report", and `schedules` must not be empty')
    options = [
        EngineOptions(
            check=check,
            statistics=statistics,
            schedule=schedule,
            landing=landing,
            preempt=preempt,
            seed=seed,
            workers=workers,
            banks=manifest.banks,
        )
        for schedule in schedules
    ]
    run = Run(
        device=_device(manifest, device, checked=check or statistics),
        options=options[0],
        schedules=tuple(schedules),
        raise_findings=on_finding == "raise",
    )
    library = binding.build_library(manifest, folder, _build(manifest, run), device=run.device)
    if library.ignored:
        _report_ignored(manifest, library, on_ignored)
    kind = gpu_kernel() if run.device in ("cuda", "hip") else Kernel
    return kind(manifest, folder, library, run, SourceMap.of(manifest, folder, Path(source) if source else None))


def _report_ignored(manifest: Manifest, library: binding.Library, how: Literal["raise", "warn"]) -> None:
    """Warns of what ptxas ignored. Errors: T2C-R012 where it is to be raised."""
    message = f"ptxas ignored a directive or instruction in the emitted source {manifest.text_file}"
    output = "\n".join(library.ignored)
    if how == "raise":
        raise CompileError("T2C-R012", message, output=output, kept=str(library.folder))
    warnings.warn(f"{message}: the kernel is right and slow (T2C-R012)\n{output}", RuntimeWarning, stacklevel=3)


def manifest_of(path: str | Path) -> Manifest:
    """The manifest of an emitted kernel, given as to load_kernel. Errors: ManifestError, also for a missing file."""
    manifest_path = _manifest_path(Path(path))
    manifest, folder = read_manifest(manifest_path), manifest_path.parent
    for name, _ in manifest.files:
        if not (folder / name).is_file():
            raise ManifestError("T2C-R001", f"{manifest_path.name} names {name}, which is not in {folder}")
    return manifest


def _manifest_path(path: Path) -> Path:
    """The manifest in a folder, next to a .cu file, or as given."""
    if path.is_dir():
        found = sorted(path.glob("*.json"))
        if len(found) != 1:
            names = ", ".join(file.name for file in found) or "none"
            raise ManifestError(
                "T2C-R001", f"{path} must hold one manifest, it holds {names}", help="give the .json file itself"
            )
        return found[0]
    return path if path.suffix == ".json" else path.with_suffix(".json")


def _architecture(manifest: Manifest, language: str, device: str) -> str:
    """The architecture, sm_80 or gfx942, of a kernel in the device's language. Errors: T2C-R022 for a kernel in the
    other.
    """
    found, architecture = manifest.target.split(":")
    if found != language:
        raise DeviceError(
            "T2C-R022",
            f'{manifest.kernel} is for {manifest.target}; device="{device}" runs kernels for {language}',
            help='device="cpu" runs any kernel on the CPU engine',
        )
    return architecture


def _device(manifest: Manifest, wanted: str | None, *, checked: bool) -> Device:
    """The requested device; else a GPU that runs the kernel, unless the run is checked."""
    match wanted:
        case "cpu" | "sim" | "ptx":
            return wanted
        case "cuda" | "hip" if checked:
            others = '"cpu", or "sim" for AMD targets'
            raise OptionError("T2C-R031", "checks and statistics are unavailable on a GPU", help=f"device={others}")
        case "cuda" | "hip":
            return wanted
        case None:
            return "cpu" if checked else _gpu(manifest) or "cpu"
    raise OptionError("T2C-R030", f"unknown device {wanted!r}", help='"cpu", "cuda", "hip", "sim" or "ptx"')


def _gpu(manifest: Manifest) -> Literal["cuda", "hip"] | None:
    """The kind of this machine's GPU that runs the kernel's code."""
    language, architecture = manifest.target.split(":")
    if language == "hip":
        return "hip" if architecture in devices.amd_architectures() else None
    capability = devices.compute_capability()
    return "cuda" if capability is not None and devices.can_run(architecture, capability) else None


def _build(manifest: Manifest, run: Run) -> Build:
    """The build of the source. Errors: T2C-R020 without a GPU, T2C-R021 and T2C-R022 when it cannot run the code."""
    match run.device:
        case "cpu" if manifest.needs:
            libraries = " and ".join(manifest.needs)
            simulator = "sim" if manifest.target.startswith("hip") else "ptx"
            raise DeviceError(
                "T2C-R022",
                f"{manifest.kernel} includes {libraries}, which g++ cannot compile",
                help=f'device="{simulator}" simulates it; `--style tl` writes a kernel that also runs on the CPU',
            )
        case "cpu":
            return host_build(manifest.text_file, check=run.is_checked, warp_size=manifest.warp_size)
        case "sim":
            return hip.simulator_build(
                manifest.text_file, architecture=_architecture(manifest, "hip", "sim"), needs=manifest.needs
            )
        case "ptx":
            return ptx_build(
                manifest.text_file, architecture=_architecture(manifest, "cuda", "ptx"), needs=manifest.needs
            )
        case "hip":
            return _hip_build(manifest)
    architecture = _architecture(manifest, "cuda", "cuda")
    capability = devices.compute_capability()
    if capability is None:
        raise DeviceError("T2C-R020", "this machine has no NVIDIA GPU", help='device="cpu" runs the same source')
    if not devices.can_run(architecture, capability):
        raise DeviceError(
            "T2C-R021",
            f"{manifest.kernel} is for {manifest.target}, the GPU here is sm_{capability[0]}{capability[1]}",
            help=f"emit it for {devices.auto_target()}",
        )
    return cuda_build(
        manifest.text_file,
        architecture=architecture,
        device=capability[0] * 10 + capability[1],
        needs=manifest.needs,
    )


def _hip_build(manifest: Manifest) -> Build:
    """AMD code objects run on exactly the architecture that they are for."""
    architecture = _architecture(manifest, "hip", "hip")
    found = devices.amd_architectures()
    if not found:
        raise DeviceError(
            "T2C-R020",
            "this machine has no AMD GPU",
            help='device="sim" runs the same code object, device="cpu" the source',
        )
    if architecture not in found:
        raise DeviceError(
            "T2C-R021",
            f"{manifest.kernel} is for {manifest.target}, the GPU here is {found[0]}",
            help=f"emit it for hip:{found[0]}",
        )
    return hip.rocm_build(manifest.text_file, architecture=architecture, needs=manifest.needs)
