"""Kernels of tests/cpu/kernels as ctypes libraries, and launches of them on the engine with a report."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tests.built import built_for_engine
from tile2cu_runtime.engine import Engine, EngineOptions

SOURCES = Path(__file__).parent / "kernels"

# Orders of threads and of the completion of asynchronous copies, as options of a launch.
SCHEDULES: list[dict[str, object]] = [
    {},
    {"schedule": "reverse"},
    {"landing": "early", "workers": 2},
    {"schedule": "shuffle", "landing": "random", "preempt": 0.02, "seed": 7},
    {"schedule": "shuffle", "landing": "random", "preempt": 0.02, "seed": 8},
]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a launch returned, wrote and reported."""

    status: int
    arrays: Sequence[np.ndarray]
    report: dict[str, Any]

    @property
    def findings(self) -> list[dict[str, Any]]:
        return self.report["findings"]

    @property
    def kinds(self) -> set[str]:
        return {finding["kind"] for finding in self.findings}

    def lines(self, kind: str) -> set[int]:
        """The lines of the places of all findings of a kind."""
        return {place["line"] for f in self.findings if f["kind"] == kind for place in f["places"]}


@dataclass(frozen=True)
class Library:
    """A kernel source, compiled with hooks (checked) and without (fast)."""

    source: Path
    checked: ctypes.CDLL
    fast: ctypes.CDLL

    def line(self, anchor: str) -> int:
        """The line of the source that ends in the comment `@anchor`."""
        return self._anchors[anchor]

    @cached_property
    def _anchors(self) -> dict[str, int]:
        lines = enumerate(self.source.read_text(encoding="utf-8").splitlines(), start=1)
        return {match[1]: number for number, text in lines if (match := re.search(r"// @(\w+)$", text))}


@dataclass(frozen=True)
class Uninitialised:
    """An argument that the kernel has to write: memory without content."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass
class Bench:
    """Compiles kernels and launches them."""

    engine: Engine
    _libraries: dict[str, Library] = field(default_factory=dict)

    def library(self, name: str) -> Library:
        if name not in self._libraries:
            source = SOURCES / f"{name}.cu"
            checked, fast = (ctypes.CDLL(str(built_for_engine(source, check=check))) for check in (True, False))
            self._libraries[name] = Library(source, checked, fast)
        return self._libraries[name]

    def assert_found(self, library: str, outcome: Outcome, kind: str, anchors: set[str]) -> None:
        """That a finding of the kind was made, and those of the kind name the lines with the anchors, and no other."""
        code = self.library(library)
        assert kind in outcome.kinds, outcome.findings
        assert outcome.lines(kind) == {code.line(anchor) for anchor in anchors}, outcome.findings
        assert {place["file"] for f in outcome.findings for place in f["places"]} == {str(code.source)}

    def launch(
        self, library: str, function: str, *arguments: int | np.ndarray | Uninitialised, **options: Any
    ) -> Outcome:
        """Calls a C function of a library with copies of the arrays in the engine's memory, or with the arrays
        themselves when nothing is observed."""
        settings = EngineOptions(**options)
        observed = settings.check or settings.statistics or settings.preempt > 0
        code = self.library(library)
        call = getattr(code.checked if observed else code.fast, function)
        with ExitStack() as stack:
            arrays: list[np.ndarray] = []
            values = [self._value(argument, arrays, stack, observed) for argument in arguments]
            with self.engine.turn(settings):
                status = call(*values)
                report = dict(self.engine.report())
            copies = list(self._contents(values, arrays))
        return Outcome(status=status, arrays=copies, report=report)

    def _value(self, argument: Any, arrays: list[np.ndarray], stack: ExitStack, observed: bool) -> Any:
        if isinstance(argument, int):
            return ctypes.c_int(argument)
        if isinstance(argument, Uninitialised):
            arrays.append(np.empty(argument.shape, argument.dtype))
            content = None
        else:
            arrays.append(np.ascontiguousarray(argument).copy())
            content = arrays[-1].ctypes.data
        if not observed:
            return ctypes.c_void_p(arrays[-1].ctypes.data)
        return ctypes.c_void_p(stack.enter_context(self.engine.memory(arrays[-1].nbytes, content)))

    @staticmethod
    def _contents(values: list[Any], arrays: list[np.ndarray]) -> Iterator[np.ndarray]:
        pointers = [value for value in values if isinstance(value, ctypes.c_void_p)]
        for pointer, array in zip(pointers, arrays, strict=True):
            if pointer.value != array.ctypes.data:
                ctypes.memmove(array.ctypes.data, pointer, array.nbytes)
            yield array
