"""Launches of test kernels on the CPU engine, with every check on."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile2cu_runtime.engine import Engine, EngineOptions


@dataclass(frozen=True, kw_only=True)
class Written:
    """An argument that the kernel writes: its memory has no content before."""

    shape: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True)
class ReadWrite:
    """An argument that has content, of which the kernel may write a part."""

    content: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a launch wrote, and what the engine counted."""

    written: list[np.ndarray]
    statistics: dict[str, Any]

    def worst_ways(self, access: str, width: int) -> int:
        """The worst bank conflict of all shared accesses of a kind and width in bytes."""
        ways = [s["worst_ways"] for s in self.statistics["shared"] if (s["access"], s["bytes"]) == (access, width)]
        assert ways, f"no {access} of {width} bytes"
        return max(ways)


Argument = int | np.ndarray | Written | ReadWrite


class Kernels:
    """A source file of kernels/, built with the engine's hooks; launches are checked and must have no findings."""

    def __init__(self, engine: Engine, library: ctypes.CDLL) -> None:
        self._engine, self._library = engine, library

    def __call__(self, function: str, *arguments: Argument, **options: Any) -> Run:
        status, run, findings = self._launch(function, *arguments, **options)
        assert status == 0
        assert findings == []
        return run

    def findings(self, function: str, *arguments: Argument, **options: Any) -> list[dict[str, Any]]:
        """The engine's findings of a faulty launch."""
        return self._launch(function, *arguments, **options)[2]

    def _launch(self, function: str, *arguments: Argument, **options: Any) -> tuple[int, Run, list[dict[str, Any]]]:
        settings = EngineOptions(**{"check": True, "statistics": True, **options})
        with ExitStack() as stack:
            values: list[Any] = []
            written: list[tuple[int, np.ndarray]] = []
            for argument in arguments:
                if isinstance(argument, int):
                    values.append(ctypes.c_int(argument))
                    continue
                array = _array(argument)
                content = None if isinstance(argument, Written) or array.nbytes == 0 else array.ctypes.data
                address = stack.enter_context(self._engine.memory(array.nbytes, content))
                values.append(ctypes.c_void_p(address))
                if not isinstance(argument, np.ndarray):
                    written.append((address, array))
            with self._engine.turn(settings):
                status = getattr(self._library, function)(*values)
                report = dict(self._engine.report())
            for address, array in written:
                ctypes.memmove(array.ctypes.data, address, array.nbytes)
        run = Run(written=[array for _, array in written], statistics=report["statistics"])
        return status, run, report["findings"]

    @staticmethod
    def flush() -> None:
        """Writes out what kernels printed."""
        ctypes.CDLL(None).fflush(None)

    def unchecked(self, function: str, *arguments: int | np.ndarray) -> int:
        """A launch on the arrays themselves."""
        with self._engine.turn(EngineOptions()):
            return getattr(self._library, function)(
                *(ctypes.c_int(a) if isinstance(a, int) else ctypes.c_void_p(a.ctypes.data) for a in arguments)
            )


def _array(argument: np.ndarray | Written | ReadWrite) -> np.ndarray:
    """The array whose content goes into the kernel's memory, or comes out of it."""
    if isinstance(argument, Written):
        return np.empty(argument.shape, argument.dtype)
    return argument.content.copy() if isinstance(argument, ReadWrite) else np.ascontiguousarray(argument)
