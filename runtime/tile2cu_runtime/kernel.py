"""A loaded kernel: called from Python, executed on a GPU, on the CPU engine or by a simulator."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tile2cu_runtime import binding
from tile2cu_runtime.arguments import BoundCall, bind_call
from tile2cu_runtime.engine import Engine, EngineOptions, load_engine
from tile2cu_runtime.errors import ArgumentError, Error, LaunchError, status_name
from tile2cu_runtime.repeats import Repeats, native_module
from tile2cu_runtime.report import CheckError, Finding, Report, SourceMap, read_report
from tile2cu_runtime.spec import Manifest, TensorArgument

if TYPE_CHECKING:
    from tile2cu_runtime.amdgcn import CostReport
    from tile2cu_runtime.bench import Bench, Timing
    from tile2cu_runtime.resources import Resources

_SHOWN = (16, 32)  # rows and columns of a tile that a notebook shows
_NOT_SUPPORTED = 3  # TL_NOT_SUPPORTED of headers/tl/status.h
Device = Literal["cpu", "cuda", "hip", "sim", "ptx"]
# The device of the tensors in their libraries' spelling: torch uses "cuda" for AMD GPUs, too.
TENSORS_ON = {"cpu": "cpu", "sim": "cpu", "ptx": "cpu", "cuda": "cuda", "hip": "cuda"}


@dataclass(frozen=True, kw_only=True)
class Run:
    """How a kernel is run: device, engine options, and the schedules of checked runs.

    The simulator has one schedule, and uses the options `check` and `statistics` only.
    """

    device: Device
    options: EngineOptions
    schedules: tuple[str, ...]
    raise_findings: bool

    @property
    def is_checked(self) -> bool:
        """Whether the kernel is built for the engine's checks and runs on copies in its memory."""
        return self.options.check or self.options.statistics


class Kernel:
    """A loaded kernel. A call checks the arguments, launches, and returns the outputs that it allocated."""

    def __init__(
        self, manifest: Manifest, folder: Path, library: binding.Library, run: Run, source_map: SourceMap
    ) -> None:
        self.manifest = manifest
        self.folder = folder
        self.source = source_map.text
        self.report: Report | None = None
        self.costs: tuple[CostReport, ...] = ()
        # The MMA operations of a call with these sizes, None if unknown: tile2cu.load counts them from the program.
        self.mma_flops: Callable[[Mapping[str, int]], int | None] | None = None
        # The layouts of its tiles by name, which plot themselves: tile2cu.load finds them in the program.
        self.layouts: Mapping[str, Any] = {}
        # For calls whose sizes this kernel does not support, as a row pitch that TMA cannot take: tile2cu.load sets it.
        self.otherwise: Callable[[], Kernel] | None = None
        self._other: Kernel | None = None
        self._library = library
        self._run = run
        self._source_map = source_map
        self._engine = load_engine() if run.device == "cpu" else None
        self._module = library.load()
        self._repeats: Repeats | None = None  # created at the first call with torch tensors
        self._first: Callable[..., Any] | None = None  # launches calls of a known kind
        if run.device in ("sim", "ptx"):
            from tile2cu_runtime.simulator import simulator  # NumPy is imported on demand

            self._simulator = simulator(library, run.device, manifest.target)

    def __deepcopy__(self, memo: object) -> Kernel:
        """The kernel itself, which has no state of its caller's: a module that has one can be copied."""
        return self

    @property
    def device(self) -> Device:
        """The device: "cpu" (the engine), "sim" or "ptx" (simulated), "cuda" or "hip" (a GPU)."""
        return self._run.device

    @property
    def is_checked(self) -> bool:
        """Whether runs are checked or counted: on copies in checked memory, on the CPU engine."""
        return self._run.is_checked

    @property
    def build_seconds(self) -> float:
        """The build time in this process; 0 for a cache hit."""
        return self._library.seconds

    @property
    def library(self) -> Path:
        """The built library. Its folder holds the source that it was compiled from."""
        return self._library.path

    def resources(self, **sizes: int) -> Resources:
        """Registers, spills, shared memory, occupancy and instruction counts; with the sizes of a call, its waves.

        The source is compiled for its target, whatever device this kernel runs on; no GPU is needed.
        Errors: CompileError (T2C-R010 without the target's compiler), ArgumentError for the sizes.
        """
        from tile2cu_runtime.resources import inspect

        return inspect(self.manifest, self.folder, sizes)

    def bench(
        self,
        *,
        peers: Mapping[str, Callable[..., Any]] | None = None,
        mma_flops: int | None = None,
        timing: Timing | None = None,
        **sizes: int,
    ) -> Bench:
        """Times the kernel on a GPU beside its peers: functions of the tensors that it reads, by label.

        On the CPU engine and the simulators it counts the work, and no time is measured. `mma_flops` replaces the
        count of the program's MMAs.
        Errors: ArgumentError for sizes, those of a call.
        """
        from tile2cu_runtime.bench import bench

        def calls(*inputs: Any) -> dict[str, Callable[[], Any]]:
            return {label: functools.partial(peer, *inputs) for label, peer in (peers or {}).items()}

        return bench(self, sizes, peers=[calls], mma_flops=mma_flops, timing=timing)

    def as_torch_op(
        self,
        name: str,
        *,
        backward: Callable[..., Any] | None = None,
        setup_context: Callable[[Any, tuple[Any, ...], Any], None] | None = None,
    ) -> Any:
        """The kernel as an operator of torch, `namespace::name`, which torch.compile and torch.export keep as one call.

        Its arguments are the kernel's tensors and scalars, its results the outputs that a call allocates. `backward`
        takes `ctx` and a gradient per result, and gives one per argument. `setup_context` is torch's; without it
        `ctx.saved_tensors` has the arguments, then the results, and `ctx.scalars` the scalars.
        Errors: T2C-R030 for a wrong name, or a size that no tensor has.
        """
        from tile2cu_runtime.torch_op import as_torch_op

        return as_torch_op(self, name, backward, setup_context)

    def __repr__(self) -> str:
        names = ", ".join(argument.name for argument in self.manifest.called)
        return f"<tile2cu kernel {self.manifest.kernel}({names}) for {self.manifest.target} on {self.device}>"

    def _repr_html_(self) -> str:
        """In a notebook: its arguments, the layouts of its tiles, and its source."""
        layouts = (
            f"<details><summary>layout of {escape(name)}: {escape(str(each))}</summary>"
            f"{each.plot(rows=_SHOWN[0], cols=_SHOWN[1]).svg}</details>"
            for name, each in self.layouts.items()
        )
        source = (
            f"<details><summary>{escape(self.manifest.text_file)}</summary><pre>{escape(self.source)}</pre></details>"
        )
        return f"<p><code>{escape(repr(self))}</code></p>{''.join(layouts)}{source}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launches the kernel.

        Arguments: tensors and scalars, positional or by keyword, with or without the outputs; outputs that are not
        passed are allocated and returned. A size may be given by keyword. On a GPU, `stream` is a torch stream or a
        stream's address, by default torch's current one. A checked run stores its findings in `report`, a simulated one
        the cost of each launch in `costs`.
        Errors: ArgumentError before anything is launched; LaunchError; CheckError in a checked run.
        """
        if not kwargs and self._first is not None:
            result = self._first(*args)
            if result is not NotImplemented:
                return result
        try:
            return self._call(*args, **kwargs)
        except LaunchError as error:
            if self.otherwise is None or error.status != _NOT_SUPPORTED:
                raise
            return self._call_other(error, args, kwargs)

    def _call_other(self, error: LaunchError, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The call by the kernel for other sizes, which is built at the first such call."""
        if self._other is None:
            assert self.otherwise is not None
            try:
                self._other = self.otherwise()
            except Error as reason:
                raise error from reason
        try:
            return self._other(*args, **kwargs)
        finally:
            self.report = self._other.report

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """Binds and checks a call, and launches it."""
        stream = kwargs.pop("stream", None) if all(a.name != "stream" for a in self.manifest.arguments) else None
        call = bind_call(self.manifest, TENSORS_ON[self.device], args, kwargs)
        if self.device in ("cuda", "hip"):
            self._launch_on_gpu(call, stream)
            if not kwargs and stream is None:
                self._remember(args, call)
        elif self.device in ("sim", "ptx"):
            self._launch_simulated(call)
        elif self._run.is_checked:
            self._launch_checked(call)
        else:
            self._launch_on_engine(call)
        return call.result

    def _remember(self, args: tuple[Any, ...], call: BoundCall) -> None:
        """Records a successful call with torch tensors, so that calls of the same kind skip binding."""
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_available():
            return
        if self._repeats is None:
            self._repeats = Repeats(self.manifest, self._module, self._fail)
        self._repeats.remember(self.manifest, args, call)
        self._first = self._repeats.launch

    def _launch_on_gpu(self, call: BoundCall, stream: Any) -> None:
        addresses = {name: view.address for name, view in call.tensors.items()}
        with _gpu(call.device) as current:
            status = self._status(call, addresses, current if stream is None else _stream_address(stream))
        if status:
            raise self._launch_error(status)

    def _launch_on_engine(self, call: BoundCall) -> None:
        assert self._engine is not None
        addresses = {name: view.address for name, view in call.tensors.items()}
        with self._engine.turn(self._run.options):
            status = self._status(call, addresses, 0)
            if status:
                said = (self._run.options.schedule, self._engine.report())
                raise self._launch_error(status, read_report([said], self._source_map).findings)

    def _launch_simulated(self, call: BoundCall) -> None:
        from tile2cu_runtime.simulator import read_results

        options = self._run.options
        addresses = {name: view.address for name, view in call.tensors.items()}
        with self._simulator.turn(call.tensors, check=options.check, measure=options.statistics) as launches:
            status = self._status(call, addresses, 0)
        self.costs = tuple(result.cost for result in launches.results)
        self.report = read_results(launches.results, self._source_map)
        self._raise_faults(status)

    def _launch_checked(self, call: BoundCall) -> None:
        """Runs on copies in checked memory, once per schedule; the results of the first run are copied back."""
        assert self._engine is not None
        reports, statuses, contents = [], [], []
        for schedule in self._run.schedules:
            options = replace(self._run.options, schedule=schedule)
            with (
                self._engine.turn(options, self.manifest.launch.aliased),
                _device_copies(self._engine, self.manifest, call) as addresses,
            ):
                statuses.append(self._status(call, addresses, 0))
                reports.append((schedule, self._engine.report()))
                contents.append(_written(self.manifest, call, addresses))
        for name, content in contents[0].items():
            ctypes.memmove(call.tensors[name].address, content, len(content))
        first, *others = contents
        unstable = tuple(name for name in first if any(other[name] != first[name] for other in others))
        self.report = replace(read_report(reports, self._source_map), unstable=unstable)
        self._raise_faults(max(statuses))

    def _raise_faults(self, status: int) -> None:
        """Raises CheckError for findings, else LaunchError for a failed launch."""
        assert self.report is not None
        if self.report.findings and self._run.raise_findings:
            raise CheckError(self.report)
        if not self.report.findings and status:
            raise self._launch_error(status)

    def _status(self, call: BoundCall, addresses: Mapping[str, int], stream: int) -> int:
        """Calls the launcher: addresses (0 of an empty tensor) and numbers in its order, then the stream."""
        values = [
            (addresses[argument.name] if call.tensors[argument.name].bytes else 0)
            if isinstance(argument, TensorArgument)
            else call.numbers[argument.name]
            for argument in self.manifest.arguments
        ]
        return int(self._module.call(*values, stream))

    def _fail(self, status: int) -> None:
        raise self._launch_error(status)

    def _launch_error(self, status: int, findings: tuple[Finding, ...] = ()) -> LaunchError:
        name = status_name(status)
        message = f"{self.manifest.kernel}: {name}: {self._module.status_string(status)}"
        return LaunchError("T2C-R200", message, status=status, name=name, notes=tuple(map(str, findings)))


@functools.lru_cache(maxsize=1)
def gpu_kernel() -> type[Kernel]:
    """The Kernel class for a GPU: if repeats.cpp can be built, calls of a known kind are dispatched in C."""
    native = native_module()
    if native is None:
        return Kernel
    return type(Kernel.__name__, (native.Called, Kernel), {"__module__": __name__, "__doc__": Kernel.__doc__})


@contextmanager
def _device_copies(engine: Engine, manifest: Manifest, call: BoundCall) -> Iterator[dict[str, int]]:
    """The addresses of copies in the engine's checked memory. Allocated outputs are uninitialised there, so that
    reads of them are findings.
    """
    written = {tensor.name for tensor in manifest.tensors if tensor.written}
    with ExitStack() as stack:
        addresses = dict.fromkeys(call.tensors, 0)
        for name, view in call.tensors.items():
            if not view.bytes:
                continue
            content = None if name in call.allocated else view.address
            memory = engine.memory(view.bytes, content, view.dtype, read_only=name not in written)
            addresses[name] = stack.enter_context(memory)
        yield addresses


def _written(manifest: Manifest, call: BoundCall, addresses: Mapping[str, int]) -> dict[str, bytes]:
    """The contents of the written arguments, by name."""
    return {
        tensor.name: ctypes.string_at(addresses[tensor.name], call.tensors[tensor.name].bytes)
        for tensor in manifest.tensors
        if tensor.written and call.tensors[tensor.name].bytes
    }


@contextmanager
def _gpu(device: str) -> Iterator[int]:
    """Makes the GPU current; yields the address of torch's current stream on it, 0 (the default stream) without
    torch.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
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
