"""The CPU engine: built once, loaded into the process, and its C interface (headers/tl/host/engine.h) as ctypes."""

from __future__ import annotations

import ctypes
import functools
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tile2cu_runtime import cache, paths
from tile2cu_runtime.compile import host_flags, run_compiler
from tile2cu_runtime.compilers import find_gxx
from tile2cu_runtime.errors import CompileError, OptionError

LIBRARY = "libtile2cu_engine.so"
_COMMON = "common.h"  # precompiled for the engine's sources
_JOBS = 2
# Vector clocks are joined in loops of unknown length, which g++ leaves scalar at -O2.
_VECTORISED = ("-ftree-vectorize", "-fvect-cost-model=dynamic")

SCHEDULES: Mapping[str, int] = {"round-robin": 0, "reverse": 1, "shuffle": 2}
LANDINGS: Mapping[str, int] = {"late": 0, "early": 1, "random": 2}
# enum tl_engine_type: the types with a marker for unwritten values.
ELEMENT_TYPES: Mapping[str, int] = {"float16": 0, "bfloat16": 1, "float32": 4, "float64": 5, "int32": 11, "uint32": 11}


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Options of a run on the engine.

    `schedule`: the order of runnable threads, one of SCHEDULES. `landing`: when asynchronous copies write their
    destination, one of LANDINGS. `preempt`: the probability that a thread yields at a memory access. `seed` of
    everything random. `workers`: OS threads that execute blocks. `banks` of shared memory, 32 or 64, for the conflicts
    that `statistics` counts. `check` and `statistics` need a kernel that was built for checking.
    """

    check: bool = False
    statistics: bool = False
    schedule: str = "round-robin"
    landing: str = "late"
    preempt: float = 0.0
    seed: int = 0
    workers: int = 1
    banks: int = 32

    def __post_init__(self) -> None:
        for name, value, known in (
            ("schedule", self.schedule, SCHEDULES),
            ("landing", self.landing, LANDINGS),
        ):
            if value not in known:
                raise OptionError("T2C-R030", f"unknown {name} {value!r}", help=f"one of {', '.join(known)}")
        if not 0.0 <= self.preempt <= 1.0 or self.workers < 1 or not 0 <= self.seed < 2**64:
            raise OptionError("T2C-R030", "`preempt` is in 0..1, `workers` at least 1, `seed` in 0..2**64-1")


class _COptions(ctypes.Structure):
    """tl_engine_options."""

    _fields_ = (
        ("check", ctypes.c_int32),
        ("statistics", ctypes.c_int32),
        ("schedule", ctypes.c_int32),
        ("landing", ctypes.c_int32),
        ("preempt", ctypes.c_double),
        ("seed", ctypes.c_uint64),
        ("workers", ctypes.c_int32),
        ("banks", ctypes.c_int32),
        ("aliased", ctypes.c_int32 * 2),
        ("most_blocks", ctypes.c_int32),
    )


class Engine:
    """The loaded engine. Its options are process-wide, so one thread at a time uses it."""

    def __init__(self, library: ctypes.CDLL, path: Path) -> None:
        self.path = path
        self._turn = threading.Lock()
        self._set_options = library.tl_engine_set_options
        self._set_options.argtypes, self._set_options.restype = [ctypes.POINTER(_COptions)], None
        self._report = library.tl_engine_report_json
        self._report.argtypes, self._report.restype = [], ctypes.c_char_p
        self._drop_report = library.tl_engine_drop_report
        self._drop_report.argtypes, self._drop_report.restype = [], None
        self._alloc = library.tl_engine_alloc
        self._alloc.argtypes, self._alloc.restype = [ctypes.c_size_t, ctypes.c_int], ctypes.c_void_p
        self._set_element_type = library.tl_engine_set_element_type
        self._set_element_type.argtypes, self._set_element_type.restype = [ctypes.c_void_p, ctypes.c_int], None
        self._set_read_only = library.tl_engine_set_read_only
        self._set_read_only.argtypes, self._set_read_only.restype = [ctypes.c_void_p], None
        self._free = library.tl_engine_free
        self._free.argtypes, self._free.restype = [ctypes.c_void_p], None

    @contextmanager
    def turn(self, options: EngineOptions, aliased: tuple[int, int] = (0, 0)) -> Iterator[None]:
        """The engine with these options, exclusively for this thread. Discards earlier reports.

        Its reports contain the data flows through the shared memory between the offsets `aliased`.
        """
        c_options = _COptions(
            check=options.check,
            statistics=options.statistics,
            schedule=SCHEDULES[options.schedule],
            landing=LANDINGS[options.landing],
            preempt=options.preempt,
            seed=options.seed,
            workers=options.workers,
            banks=options.banks,
            aliased=aliased,
        )
        with self._turn:
            self._set_options(ctypes.byref(c_options))
            self._drop_report()
            try:
                yield
            finally:
                self._set_options(None)

    def report(self) -> Mapping[str, Any]:
        """The engine's report of this thread's launches since the last one."""
        text = self._report()
        return json.loads(text) if text else {}

    @contextmanager
    def memory(self, size: int, content: int | None, dtype: str = "", *, read_only: bool = False) -> Iterator[int]:
        """The address of `size` bytes of checked memory, initialised from the address `content`, or uninitialised.
        With a `dtype` of ELEMENT_TYPES, stores of unwritten values to it are findings. `read_only`
        memory is not checked for races.
        """
        address = self._alloc(size, int(content is not None))
        if not address:
            raise MemoryError(f"the CPU engine's heap has fewer than {size} free bytes")
        try:
            if dtype in ELEMENT_TYPES:
                self._set_element_type(address, ELEMENT_TYPES[dtype])
            if read_only:
                self._set_read_only(address)
            if content is not None:
                ctypes.memmove(address, content, size)
            yield address
        finally:
            self._free(address)


# One engine per process: its options, and the lock that guards them, are process-wide.
_loading = threading.Lock()


def load_engine() -> Engine:
    """The engine, built if necessary. Its symbols are global, for kernels that are loaded later."""
    with _loading:
        return _loaded_engine()


@functools.lru_cache(maxsize=1)
def _loaded_engine() -> Engine:
    path = build_engine()
    return Engine(ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL), path)


def build_engine() -> Path:
    """The path of libtile2cu_engine.so, from the cache or built. Errors: T2C-R01x when it does not compile."""
    sources = sorted(paths.engine_dir().glob("*.cpp"))
    if not sources:
        raise CompileError("T2C-R013", f"no sources of the CPU engine in {paths.engine_dir()}")
    gxx = find_gxx()
    own = (*host_flags(check=False), *_VECTORISED)
    flags = (*own, "-I", str(paths.headers_dir()))
    headers = cache.tree_key(paths.headers_dir() / "tl" / "host", (".h",))
    key = cache.content_key(gxx.version, *own, cache.tree_key(paths.engine_dir()), headers)

    def make(temporary: Path, place: Path) -> None:
        from concurrent.futures import ThreadPoolExecutor  # imported here: it imports logging, 5 ms

        # Reading headers that nearly every source includes takes half of the compile time.
        (temporary / _COMMON).write_text('#include "worker.h"\n', encoding="utf-8")
        common = ("-I", str(paths.engine_dir()), _COMMON)
        run_compiler((gxx.path, "-x", "c++-header", *flags, *common), temporary, "the CPU engine's headers")

        def compile_one(source: Path) -> None:
            command = (gxx.path, *flags, "-include", _COMMON, "-c", str(source), "-o", f"{source.stem}.o")
            run_compiler(command, temporary, f"the CPU engine's {source.name}")

        with ThreadPoolExecutor(_JOBS) as pool:
            list(pool.map(compile_one, sources))
        objects = [f"{source.stem}.o" for source in sources]
        link = (gxx.path, "-shared", *objects, "-o", LIBRARY, f"-Wl,-soname,{LIBRARY}", "-lpthread", "-ldl")
        run_compiler(link, temporary, "the CPU engine")
        for name in (*objects, _COMMON, f"{_COMMON}.gch"):
            (temporary / name).unlink()

    return cache.get_or_build("engine", key, make).folder / LIBRARY
