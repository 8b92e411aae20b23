"""Loading an emitted kernel: from a folder with .cu, .h and .json to a Python callable."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from tile2cu_runtime import binding, cache
from tile2cu_runtime import device as devices
from tile2cu_runtime.arguments import BoundCall, bind_call
from tile2cu_runtime.compile import Build, cuda_build, host_build
from tile2cu_runtime.engine import Engine, EngineOptions, load_engine
from tile2cu_runtime.errors import ArgumentError, DeviceError, LaunchError, ManifestError, OptionError, status_name
from tile2cu_runtime.report import CheckError, Report, SourceMap, read_report
from tile2cu_runtime.spec import Manifest, TensorArgument, read_manifest

Device = Literal["cpu", "cuda"]


@dataclass(frozen=True, kw_only=True)
class _Run:
    """How a kernel is run: where, and on the CPU under which schedules."""

    device: Device
    options: EngineOptions
    schedules: tuple[str, ...]
    raise_findings: bool


class Kernel:
    """A loaded kernel. Calling it checks the arguments, launches, and returns the outputs that it allocated."""

    def __init__(
        self, manifest: Manifest, folder: Path, library: binding.Library, run: _Run, source_map: SourceMap
    ) -> None:
        self.manifest = manifest
        self.folder = folder
        self.source = source_map.text
        self.report: Report | None = None
        self._library = library
        self._run = run
        self._source_map = source_map
        self._engine = load_engine() if run.device == "cpu" else None
        self._module: ModuleType = binding.import_library(library)

    @property
    def device(self) -> Device:
        """Where it runs: "cpu", on the engine, or "cuda"."""
        return self._run.device

    @property
    def build_seconds(self) -> float:
        """What building cost in this process; 0 when the library came from the cache."""
        return self._library.seconds

    @property
    def library(self) -> Path:
        """The built library. Its folder holds the text that it was compiled from."""
        return self._library.path

    def __repr__(self) -> str:
        names = ", ".join(argument.name for argument in self.manifest.called)
        return f"<tile2cu kernel {self.manifest.kernel}({names}) for {self.manifest.target} on {self.device}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launches the kernel.

        Arguments: tensors and scalars, positional or by keyword, with or without the outputs; outputs that are not
        passed are allocated and returned. A size may be given by keyword. On a GPU, `stream` is a stream of torch, or
        its address; by default torch's current one.
        Errors: ArgumentError before anything is launched; LaunchError; CheckError in a checked run.
        """
        stream = kwargs.pop("stream", None) if all(a.name != "stream" for a in self.manifest.arguments) else None
        call = bind_call(self.manifest, self.device, args, kwargs)
        if self.device == "cuda":
            self._launch_on_gpu(call, stream)
        elif self._run.options.check or self._run.options.statistics:
            self._launch_checked(call)
        else:
            self._launch_on_engine(call)
        return call.result

    def _launch_on_gpu(self, call: BoundCall, stream: Any) -> None:
        with _gpu(call.device) as current:
            addresses = {name: view.address for name, view in call.tensors.items()}
            self._expect_ok(self._status(call, addresses, current if stream is None else _stream_address(stream)), None)

    def _launch_on_engine(self, call: BoundCall) -> None:
        assert self._engine is not None
        addresses = {name: view.address for name, view in call.tensors.items()}
        with self._engine.turn(self._run.options):
            status = self._status(call, addresses, 0)
            report = read_report([("", self._engine.report())], self._source_map) if status else None
        self._expect_ok(status, report)

    def _launch_checked(self, call: BoundCall) -> None:
        """Runs on copies in checked memory, once a schedule; what the first run wrote is copied back."""
        assert self._engine is not None
        reports, statuses, contents = [], [], []
        for schedule in self._run.schedules:
            options = replace(self._run.options, schedule=schedule)
            with self._engine.turn(options), _device_copies(self._engine, call) as addresses:
                statuses.append(self._status(call, addresses, 0))
                reports.append((schedule, self._engine.report()))
                contents.append(_written(self.manifest, call, addresses))
        for name, content in contents[0].items():
            ctypes.memmove(call.tensors[name].address, content, len(content))
        first, *others = contents
        unstable = tuple(name for name in first if any(other[name] != first[name] for other in others))
        self.report = replace(read_report(reports, self._source_map), unstable=unstable)
        if self.report.findings and self._run.raise_findings:
            raise CheckError(self.report)
        if not self.report.findings:
            self._expect_ok(next((status for status in statuses if status), 0), None)

    def _status(self, call: BoundCall, addresses: Mapping[str, int], stream: int) -> int:
        """Calls the launcher: addresses (0 of an empty tensor) and numbers in its order, then the stream."""
        values = [
            (addresses[argument.name] if call.tensors[argument.name].bytes else 0)
            if isinstance(argument, TensorArgument)
            else call.numbers[argument.name]
            for argument in self.manifest.arguments
        ]
        return int(self._module.call(*values, stream))

    def _expect_ok(self, status: int, report: Report | None) -> None:
        if status == 0:
            return
        self.report = report or self.report
        name = status_name(status)
        sentence = self._module.status_string(status)
        findings = tuple(str(finding) for finding in report.findings) if report else ()
        raise LaunchError(
            "T2C-R200", f"{self.manifest.kernel}: {name}: {sentence}", status=status, name=name, notes=findings
        )


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
    source: str | Path | None = None,
) -> Kernel:
    """Loads an emitted kernel from its folder, its manifest or its .cu file; builds it unless the cache has it.

    `device`: "cpu" runs the text on the CPU engine, "cuda" on a GPU; by default a GPU when this machine has one that
    runs the target's code, and the CPU for `check`. `check` looks for races, accesses out of bounds or of uninitialised
    memory, and wrong synchronisation, under each of the `schedules` ("round-robin", "reverse", "shuffle"); findings
    raise CheckError, or are only left in `.report` with `on_finding="report"`. `statistics` counts bank conflicts and
    sectors. `landing`, `preempt`, `seed` and `workers` are those of EngineOptions. `source` is the Python file, if it
    lies neither beside the manifest nor in the current folder: reports then show its lines.
    Errors: ManifestError, OptionError, DeviceError, CompileError.
    """
    manifest_path = _manifest_path(Path(path))
    manifest = read_manifest(manifest_path)
    instrumented = check or statistics
    chosen = device or ("cpu" if instrumented else _default_device(manifest))
    if chosen not in ("cpu", "cuda"):
        raise OptionError("T2C-R030", f"there is no device {chosen!r}", help='"cpu" or "cuda"')
    if instrumented and chosen == "cuda":
        raise OptionError("T2C-R031", "checks and statistics are the CPU engine's", help='device="cpu"')
    if on_finding not in ("raise", "report") or not schedules:
        raise OptionError("T2C-R030", '`on_finding` is "raise" or "report", and `schedules` names one at least')
    options = EngineOptions(
        check=check,
        statistics=statistics,
        schedule=schedules[0],
        landing=landing,
        preempt=preempt,
        seed=seed,
        workers=workers,
    )
    run = _Run(
        device=chosen,
        options=options,
        schedules=tuple(replace(options, schedule=schedule).schedule for schedule in schedules),
        raise_findings=on_finding == "raise",
    )
    folder = manifest_path.parent
    for name, _ in manifest.files:
        if not (folder / name).is_file():
            raise ManifestError("T2C-R001", f"{manifest_path.name} names {name}, which is not in {folder}")
    build = _build(manifest, chosen, check=instrumented)
    library = binding.build_library(manifest, folder, build, cuda=chosen == "cuda")
    return Kernel(manifest, folder, library, run, SourceMap.of(manifest, folder, Path(source) if source else None))


def load_files(files: Mapping[str, str], **options: Any) -> Kernel:
    """Loads an emitted kernel from its files' texts by name, .cu, .h and .json; `options` are those of `load_kernel`.

    The files are kept in the cache, so that a debugger finds them.
    """

    def write(temporary: Path, place: Path) -> None:
        for name, text in files.items():
            (temporary / Path(name).name).write_text(text, encoding="utf-8")

    manifest = next((name for name in files if name.endswith(".json")), "")
    parts = [part for name, text in sorted(files.items()) for part in (name, text)]
    entry = cache.get_or_build("texts", cache.content_key(*parts), write)
    return load_kernel(entry.folder / (manifest or "manifest.json"), **options)


def _manifest_path(path: Path) -> Path:
    """The manifest in a folder, beside a .cu file, or as given."""
    if path.is_dir():
        found = sorted(path.glob("*.json"))
        if len(found) != 1:
            names = ", ".join(file.name for file in found) or "none"
            raise ManifestError(
                "T2C-R001", f"{path} must hold one manifest, it holds {names}", help="give the .json file itself"
            )
        return found[0]
    return path if path.suffix == ".json" else path.with_suffix(".json")


def _architecture(manifest: Manifest) -> str:
    language, architecture = manifest.target.split(":")
    if language != "cuda":
        raise DeviceError(
            "T2C-R022",
            f"{manifest.kernel} is for {manifest.target}; this runtime launches on NVIDIA GPUs only",
            help='device="cpu" runs it on the CPU engine',
        )
    return architecture


def _default_device(manifest: Manifest) -> Device:
    capability = devices.compute_capability()
    if capability is None or not manifest.target.startswith("cuda:"):
        return "cpu"
    return "cuda" if devices.can_run(_architecture(manifest), capability) else "cpu"


def _build(manifest: Manifest, device: Device, *, check: bool) -> Build:
    if device == "cpu":
        return host_build(manifest.text_file, check=check)
    architecture = _architecture(manifest)
    capability = devices.compute_capability()
    if capability is None:
        raise DeviceError("T2C-R020", "this machine has no NVIDIA GPU", help='device="cpu" runs the same text')
    if not devices.can_run(architecture, capability):
        raise DeviceError(
            "T2C-R021",
            f"{manifest.kernel} is for {manifest.target}, the GPU here is sm_{capability[0]}{capability[1]}",
            help=f"emit it for {devices.auto_target()}",
        )
    return cuda_build(manifest.text_file, architecture=architecture, device=capability[0] * 10 + capability[1])


@contextmanager
def _device_copies(engine: Engine, call: BoundCall) -> Iterator[dict[str, int]]:
    """Addresses of copies in the engine's checked memory. Outputs that we allocated are left uninitialised there, so
    that a kernel which reads them is found out."""
    with ExitStack() as stack:
        addresses = {}
        for name, view in call.tensors.items():
            content = None if name in call.allocated else view.address
            addresses[name] = stack.enter_context(engine.memory(view.bytes, content)) if view.bytes else 0
        yield addresses


def _written(manifest: Manifest, call: BoundCall, addresses: Mapping[str, int]) -> dict[str, bytes]:
    """Content of the written arguments, by name."""
    return {
        tensor.name: ctypes.string_at(addresses[tensor.name], call.tensors[tensor.name].bytes)
        for tensor in manifest.tensors
        if tensor.written and call.tensors[tensor.name].bytes
    }


@contextmanager
def _gpu(device: str) -> Iterator[int]:
    """Makes the GPU current; gives the address of torch's current stream on it, 0 (the default one) without torch."""
    torch = sys.modules.get("torch")
    if torch is None:
        with nullcontext():
            yield 0
        return
    index = int(device.partition(":")[2] or torch.cuda.current_device())
    with torch.cuda.device(index):
        yield int(torch.cuda.current_stream(index).cuda_stream)


def _stream_address(stream: Any) -> int:
    for name in ("cuda_stream", "ptr", "handle"):
        if isinstance(address := getattr(stream, name, None), int):
            return address
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    message = f"`stream` must be a CUDA stream or its address, not {type(stream).__name__}"
    raise ArgumentError("T2C-R113", message, argument="stream")
