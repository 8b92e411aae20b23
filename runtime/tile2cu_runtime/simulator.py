"""device="sim": an emitted kernel's own launcher runs here, and each launch it makes goes to the AMD simulator."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn import CodeObject, Result, SimulatorError, SimulatorFinding, simulate
from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.amdgcn.kernarg import ArgumentValue, Pointer
from tile2cu_runtime.binding import Library
from tile2cu_runtime.hip import CODE_OBJECT
from tile2cu_runtime.report import Finding, Place, Report, SourceMap
from tile2cu_runtime.tensors import TensorView


class _Extent(ctypes.Structure):
    """tile2cu::Extent of hip_launches.h."""

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
_FAILED = 1  # hipErrorInvalidValue; the exception itself is raised once the launcher has returned


@dataclass
class Launches:
    """What the launches of one call gave, in order; `failure` ended them."""

    results: list[Result] = field(default_factory=list)
    failure: Exception | None = None


class Simulator:
    """Simulates the launches of one binding, one call at a time."""

    def __init__(self, library: Library) -> None:
        self._code = CodeObject.load(library.folder / CODE_OBJECT)
        self._set_launch = ctypes.CDLL(str(library.path)).tile2cu_set_launch
        self._set_launch.argtypes, self._set_launch.restype = [_LAUNCH], None
        self._turn = threading.Lock()

    @contextmanager
    def turn(self, tensors: Mapping[str, TensorView], *, check: bool, measure: bool) -> Iterator[Launches]:
        """Launches of this thread go to the simulator; `tensors` are what their pointers may point to."""
        launches = Launches()
        known = [_Range(f"`{name}`", view.address, _bytes_at(view.address, view.bytes, view.writable))
                 for name, view in tensors.items() if view.bytes]  # fmt: skip

        def launch(kernel: bytes, grid: Any, block: Any, values: Any, shared_bytes: int, workspace: Any) -> int:
            # No exception may leave: it would be lost between C and Python.
            try:
                name, ranges = kernel.decode(), list(known)
                if start := workspace[0].start:
                    ranges.append(_Range("the workspace", start, _bytes_at(start, workspace[0].bytes, True)))
                arguments = self._arguments(name, values, ranges)
                result = simulate(
                    self._code, name, grid[0].counts, block[0].counts, [value for _, value in arguments],
                    check=check, measure=measure, dynamic_lds=shared_bytes, names=[name for name, _ in arguments],
                )  # fmt: skip
                launches.results.append(result)
            except Exception as problem:
                launches.failure = problem
                return _FAILED
            return 0

        callback = _LAUNCH(launch)
        with self._turn:
            self._set_launch(callback)
            try:
                yield launches
            finally:
                self._set_launch(_LAUNCH(0))
        if launches.failure is not None:
            raise launches.failure

    def _arguments(self, kernel: str, values: Any, ranges: Sequence[_Range]) -> list[tuple[str, ArgumentValue]]:
        """The kernel's arguments as simulate takes them, with their names; `values` is what hipLaunchKernel was given.

        A pointer is a place in a tensor's bytes or the workspace's, anything else what was passed.
        """
        arguments: list[tuple[str, ArgumentValue]] = []
        explicit = [argument for argument in self._code.kernel(kernel).arguments if not argument.is_hidden]
        for number, argument in enumerate(explicit):
            raw = ctypes.string_at(values[number], argument.size)
            address = int.from_bytes(raw, "little") if argument.value_kind == "global_buffer" else 0
            home = next((each for each in ranges if each.start <= address < each.start + each.content.size), None)
            if address and home is None:
                raise SimulatorError(f"argument {number} of {kernel} points to {address:#x}, where no tensor is")
            value = Pointer(home.content, address - home.start) if home else raw
            arguments.append((home.name if home else f"argument {number}", value))
        return arguments


@dataclass(frozen=True)
class _Range:
    """Memory that a kernel may be given a pointer into."""

    name: str
    start: int
    content: Array


def read_results(results: Sequence[Result], source_map: SourceMap) -> Report:
    """The findings of all launches of a call, at lines of the emitted text and of the Python source.

    Several instructions of one line that fail alike are one finding.
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
    """The innermost inlined frame that is a line of the emitted text; the outermost one if none is."""
    text = source_map.manifest.text_file
    file, line = next((frame for frame in frames if frame[0].endswith(text)), frames[-1])
    return source_map.place(file, line)


def _bytes_at(address: int, size: int, writable: bool) -> Array:
    """Memory as an array; one that cannot be written is not written back."""
    raw: Array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
    raw.flags.writeable = writable
    return raw
