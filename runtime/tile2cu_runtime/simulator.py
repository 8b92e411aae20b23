"""device="sim" and "ptx": executes an emitted kernel's launcher natively, and passes each of its launches to a
simulator.
"""

from __future__ import annotations

import ctypes
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn import CodeObject, Result, SimulatorError, SimulatorFinding, simulate
from tile2cu_runtime.amdgcn.arguments import ArgumentValue, Pointer, Record
from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.binding import Library
from tile2cu_runtime.errors import SimulationError
from tile2cu_runtime.hip import CODE_OBJECT
from tile2cu_runtime.ptx import Module, tensor_map
from tile2cu_runtime.report import Finding, Place, Report, SourceMap
from tile2cu_runtime.tensors import TensorView


class _Extent(ctypes.Structure):
    """tile2cu::Extent of launches.h."""

    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32))

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.x, self.y, self.z


class _Memory(ctypes.Structure):
    """tile2cu::Memory."""

    _fields_ = (("start", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


# tile2cu::Launch.
_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.POINTER(_Extent),
    ctypes.POINTER(_Extent),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_size_t,
    ctypes.POINTER(_Memory),
)
_FAILED = 1  # hipErrorInvalidValue; the exception is raised after the launcher has returned


@dataclass
class Launches:
    """The results of the launches of one call, in order; `failure` aborted them."""

    results: list[Result] = field(default_factory=list)
    failure: Exception | None = None


class Machine(ABC):
    """The simulator of one binding's device code."""

    # The compute capability that a CUDA launcher queries, 80 for 8.0.
    compute_capability = 0

    @abstractmethod
    def parameter_bytes(self, kernel: str) -> list[int]:
        """The size in bytes of each kernel argument."""

    @abstractmethod
    def run(self, kernel: str, launch: Launch, *, check: bool, measure: bool) -> Result | None:
        """Executes a launch; returns findings and cost if the machine has them. Errors: SimulationError."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A launch: extents, arguments with their names for findings, bytes of dynamic shared memory."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: Sequence[ArgumentValue]
    names: Sequence[str]
    shared_bytes: int


class AmdMachine(Machine):
    """The AMD simulator."""

    def __init__(self, library: Library) -> None:
        self._code = CodeObject.load(library.folder / CODE_OBJECT)

    def parameter_bytes(self, kernel: str) -> list[int]:
        return [argument.size for argument in self._code.kernel(kernel).arguments if not argument.is_hidden]

    def run(self, kernel: str, launch: Launch, *, check: bool, measure: bool) -> Result:
        return simulate(
            self._code, kernel, launch.grid, launch.block, launch.arguments,
            check=check, measure=measure, dynamic_lds=launch.shared_bytes, names=launch.names,
        )  # fmt: skip


class PtxMachine(Machine):
    """The PTX machine. `compute_capability`: that of the simulated target."""

    def __init__(self, library: Library, compute_capability: int) -> None:
        self._module = Module.load(next(library.folder.glob("*.ptx")))
        self.compute_capability = compute_capability

    def parameter_bytes(self, kernel: str) -> list[int]:
        return [parameter.bytes for parameter in self._module.kernels[kernel].parameters]

    def run(self, kernel: str, launch: Launch, *, check: bool, measure: bool) -> None:
        self._module.launch(
            kernel, launch.grid, launch.block, launch.arguments, shared_bytes=launch.shared_bytes, names=launch.names
        )


def simulator(library: Library, device: str, target: str) -> Simulator:
    """The simulator of "sim" or "ptx" for the binding of a source for `target`, such as cuda:sm_90a."""
    if device == "sim":
        return Simulator(library, AmdMachine(library))
    return Simulator(library, PtxMachine(library, int(target.partition("sm_")[2].rstrip("a"))))


class Simulator:
    """Simulates the launches of one binding, one call at a time."""

    def __init__(self, library: Library, machine: Machine) -> None:
        self._machine = machine
        self._set_launch = ctypes.CDLL(str(library.path)).tile2cu_set_launch
        self._set_launch.argtypes, self._set_launch.restype = [_LAUNCH, ctypes.c_int], None
        self._turn = threading.Lock()

    @contextmanager
    def turn(self, tensors: Mapping[str, TensorView], *, check: bool, measure: bool) -> Iterator[Launches]:
        """Directs launches of this thread to the simulator; `tensors` are the memory that pointers may address."""
        launches = Launches()
        known = [
            _Range(f"`{name}`", view.address, _bytes_at(view.address, view.bytes, view.writable))
            for name, view in tensors.items()
            if view.bytes
        ]

        def launch(kernel: bytes, grid: Any, block: Any, values: Any, shared_bytes: int, workspace: Any) -> int:
            # An exception must not propagate through C.
            try:
                name, ranges = kernel.decode(), list(known)
                if start := workspace[0].start:
                    ranges.append(_Range("the workspace", start, _bytes_at(start, workspace[0].bytes, True)))
                arguments = self._arguments(name, values, ranges)
                wanted = Launch(
                    grid=grid[0].counts,
                    block=block[0].counts,
                    arguments=[value for _, value in arguments],
                    names=[name for name, _ in arguments],
                    shared_bytes=shared_bytes,
                )
                if result := self._machine.run(name, wanted, check=check, measure=measure):
                    launches.results.append(result)
            except SimulatorError as problem:
                launches.failure = SimulationError("T2C-R210", str(problem))
                return _FAILED
            except Exception as problem:
                launches.failure = problem
                return _FAILED
            return 0

        callback = _LAUNCH(launch)
        with self._turn:
            self._set_launch(callback, self._machine.compute_capability)
            try:
                yield launches
            finally:
                self._set_launch(_LAUNCH(0), 0)
        if launches.failure is not None:
            raise launches.failure

    def _arguments(self, kernel: str, values: Any, ranges: Sequence[_Range]) -> list[tuple[str, ArgumentValue]]:
        """The kernel's arguments with their names; `values` are the runtime's argument pointers.

        8 bytes that are an address in a tensor or the workspace are a pointer, and so is the address in a tensor map;
        other arguments are passed by value.
        """
        arguments: list[tuple[str, ArgumentValue]] = []
        for number, size in enumerate(self._machine.parameter_bytes(kernel)):
            raw = ctypes.string_at(values[number], size)
            if tensor_map.is_encoded(raw):
                places: Sequence[int] = (tensor_map.ADDRESS_OFFSET,)
            else:  # a pointer, or a struct that begins with pointers
                places = range(0, size - size % 8, 8)
            pointers: dict[int, Pointer] = {}
            names: dict[int, str] = {}
            for at in places:
                address = int.from_bytes(raw[at : at + 8], "little")
                home = next((each for each in ranges if each.start <= address < each.start + each.content.size), None)
                if home:
                    pointers[at] = Pointer(home.content, address - home.start)
                    names[at] = home.name
            value: ArgumentValue = raw
            if pointers:
                value = pointers[0] if size == 8 else Record(raw, pointers, names)
            arguments.append((names[0] if size == 8 and names else f"argument {number}", value))
        return arguments


@dataclass(frozen=True)
class _Range:
    """Memory that a kernel's pointers may address."""

    name: str
    start: int
    content: Array


def read_results(results: Sequence[Result], source_map: SourceMap) -> Report:
    """The findings of all launches of a call, at lines of the emitted source and of the Python source.

    The same finding at several instructions of one line is one finding.
    """
    found: dict[tuple[object, ...], Finding] = {}
    for finding in (_finding(each, source_map) for result in results for each in result.findings):
        old = found.setdefault((finding.kind, finding.places), finding)
        if old is not finding:
            found[finding.kind, finding.places] = replace(old, count=old.count + finding.count)
    return Report(kernel=source_map.manifest.kernel, findings=tuple(found.values()), schedules=("simulated",))


def _finding(found: SimulatorFinding, source_map: SourceMap) -> Finding:
    group = ", ".join(map(str, found.workgroup))
    where = f"workgroup ({group}), wave {found.wave}, lane {found.lane}: `{found.place.instruction}`"
    ends = [found.place] if found.other is None else [found.place, found.other]
    places = tuple(_place(end.frames or ((end.file, end.line),), source_map) for end in ends)
    return Finding(kind=found.kind, message=f"{found.message}; {where}", count=found.count, places=places)


def _place(frames: Sequence[tuple[str, int]], source_map: SourceMap) -> Place:
    """The innermost inlined frame in the emitted source; the outermost frame if none is."""
    text = source_map.manifest.text_file
    file, line = next((frame for frame in frames if frame[0].endswith(text)), frames[-1])
    return source_map.place(file, line)


def _bytes_at(address: int, size: int, writable: bool) -> Array:
    """Memory as an array; read-only memory is not written back."""
    raw: Array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
    raw.flags.writeable = writable
    return raw
