"""Kernels for the CPU engine without a Python binding: ctypes calls the launcher in the kernel's own object.

The runtime's way adds a process of cppimport, a compilation and a link by g++, a quarter of a small kernel's build; the
kernel's code is the same. tests/unit/runtime and the tests marked `binding` take that way.
"""

from __future__ import annotations

import ctypes
import functools
import re
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tests.built import built
from tile2cu_runtime import binding, cache, paths
from tile2cu_runtime.compile import OBJECT, Build, precompiled_headers, run_compiler
from tile2cu_runtime.spec import Manifest, TensorArgument

_LIBRARY = "kernel.so"
_INCLUDED = re.compile(rb"^#include (.*)$", re.MULTILINE)
_ELSEWHERE = re.compile(rb"<(?!tl/)")  # headers that may need what the precompiled one leaves out
_NUMBERS = {
    "bool": ctypes.c_bool,
    **{f"int{bits}": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)},
    "float16": ctypes.c_float,  # the launcher's interface is plain C
    "bfloat16": ctypes.c_float,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "ptr": ctypes.c_uint64,
}
_RTLD_DI_LINKMAP = 2
_SYMBOL_TABLE = 2  # SHT_SYMTAB


class EngineMemory(NamedTuple):
    """The engine's allocation, of bytes and whether they are initialised, and its release."""

    alloc: Callable[[int, int], int]
    free: Callable[[int], None]


class Launcher:
    """What a binding's module offers, for one library."""

    def __init__(self, library: Path, manifest: Manifest) -> None:
        self._types = [
            ctypes.c_void_p if isinstance(argument, TensorArgument) else _NUMBERS[argument.dtype]
            for argument in manifest.arguments
        ]
        types = (*self._types, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
        entry = entry_address(library)
        self._launcher = ctypes.CFUNCTYPE(ctypes.c_int, *types)(entry)
        self._workspace_size: Callable[..., int] | None = None
        if manifest.workspace:
            offsets = symbols(library.read_bytes())
            place = entry + offsets[f"{manifest.entry}_workspace_size"] - offsets[manifest.entry]
            self._workspace_size = ctypes.CFUNCTYPE(ctypes.c_size_t, *(ctypes.c_int for _ in manifest.sizes))(place)
            self._sizes = [manifest.arguments.index(size) for size in manifest.sizes]

    def call(self, *values: Any) -> int:
        *arguments, stream = values
        numbers = [
            float(value) if kind in (ctypes.c_float, ctypes.c_double) else int(value)
            for kind, value in zip(self._types, arguments, strict=True)
        ]
        with self._workspace(numbers) as (workspace, size):
            return int(self._launcher(*numbers, workspace, size, stream))

    @contextmanager
    def _workspace(self, numbers: list[int | float]) -> Iterator[tuple[int | None, int]]:
        """The workspace of a call with these arguments, and its bytes: as in a binding, the engine's memory."""
        size = self._workspace_size(*(numbers[index] for index in self._sizes)) if self._workspace_size else 0
        memory = engine_memory().alloc(size, 0) if size else None
        try:
            yield memory, size
        finally:
            if memory:
                engine_memory().free(memory)

    def status_string(self, status: int) -> str:
        return str(_status_string()(status).decode())


def entry_address(library: Path) -> int:
    """The address of the loaded library's entry point. The launcher is compiled as a hidden symbol: dlsym does not find
    it, but the linker's -e puts its offset into the ELF header.
    """
    (offset,) = struct.unpack_from("<Q", library.read_bytes(), 24)
    assert offset, f"{library} has no entry point"
    loaded, found = ctypes.CDLL(str(library)), ctypes.POINTER(ctypes.c_uint64)()
    assert ctypes.CDLL(None).dlinfo(ctypes.c_void_p(loaded._handle), _RTLD_DI_LINKMAP, ctypes.byref(found)) == 0
    return int(offset) + int(found[0])  # link_map begins with the difference of addresses


def symbols(library: bytes) -> dict[str, int]:
    """The offsets of a library's symbols, hidden ones too. [ELF-64 Object File Format, sections 3 and 5]"""
    (table,), (size, count) = struct.unpack_from("<Q", library, 40), struct.unpack_from("<HH", library, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", library, table + size * number) for number in range(count)]
    _, _, _, _, first, length, names, *_ = next(section for section in sections if section[1] == _SYMBOL_TABLE)
    text = sections[names][4]
    found = {}
    for place in range(first, first + length, 24):
        name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", library, place)
        found[library[text + name : library.index(b"\0", text + name)].decode()] = value
    return found


@functools.cache
def engine_memory() -> EngineMemory:
    """The functions by which a binding has a workspace; the engine is loaded, its symbols are global."""
    engine = ctypes.CDLL(None)
    alloc, free = engine.tl_engine_alloc, engine.tl_engine_free
    alloc.argtypes, alloc.restype = (ctypes.c_size_t, ctypes.c_int), ctypes.c_void_p
    free.argtypes, free.restype = (ctypes.c_void_p,), None
    return EngineMemory(alloc, free)


def compile_command(manifest: Manifest, build: Build, temporary: Path, place: Path) -> tuple[str, ...]:
    """As the binding's; groups of 128 threads, which most sources with groups have, have a precompiled header, too."""
    command = binding.compile_command(manifest, build, temporary, place, device="cpu")
    source = (temporary / manifest.text_file).read_bytes()
    defined = re.findall(rb"^#define (TL_\w+) (.*)$", source, re.MULTILINE)
    if defined != [(b"TL_GROUP", b"128")] or manifest.needs or any(map(_ELSEWHERE.match, _INCLUDED.findall(source))):
        return command
    compiler = build.compile[0]
    of_groups = replace(build, compile=(compiler, *build.compile[1:3], "-DTL_GROUP=128", *build.compile[3:]))
    return (compiler, *command[1:3], "-DTL_GROUP=128", *command[3:], *precompiled_headers(of_groups))


def link(folder: Path, entry: str) -> Path:
    """The object of a kernel in a folder as a library. What it calls is the engine's, or the engine's libraries'."""
    # A real __dso_handle is in g++'s crtbeginS.o, which needs g++'s driver for 15 ms; ctypes unloads no library.
    command = ("ld", "-shared", "--eh-frame-hdr", "--defsym", "__dso_handle=0", "-e", entry, OBJECT, "-o", _LIBRARY)
    run_compiler(command, folder, "the library")
    return folder / _LIBRARY


@dataclass(frozen=True, kw_only=True)
class QuickLibrary(binding.Library):
    """A library whose launcher ctypes calls."""

    manifest: Manifest

    def load(self) -> Any:
        return Launcher(self.path, self.manifest)


def quick_library(manifest: Manifest, folder: Path, build: Build, *, device: str) -> binding.Library:
    """As binding.build_library, and takes its place in tests."""
    if device != "cpu":
        return _runtime_way(manifest, folder, build, device=device)
    sources = {name: (folder / name).read_bytes() for name in (manifest.text_file, manifest.header_file)}
    key = cache.content_key(
        build.identity, repr(build), manifest.entry, *sources, *sources.values(), cache.tree_key(paths.headers_dir())
    )

    def make(temporary: Path, place: Path) -> None:
        for name, content in sources.items():
            (temporary / name).write_bytes(content)
        command = compile_command(manifest, build, temporary, place)
        run_compiler(command, temporary, f"the emitted source {manifest.text_file}")
        link(temporary, manifest.entry)
        (temporary / OBJECT).unlink()

    started = time.perf_counter()
    entry = cache.get_or_build("tests", key, make)
    return QuickLibrary(
        folder=entry.folder,
        module=manifest.entry,
        path=entry.folder / _LIBRARY,
        seconds=time.perf_counter() - started if entry.built else 0.0,
        manifest=manifest,
    )


_runtime_way = binding.build_library


@functools.cache
def _status_string() -> Callable[[int], bytes]:
    source = Path(__file__).with_name("status_string.c")
    command = ["gcc", "-shared", "-fPIC", "-I", str(paths.headers_dir()), str(source), "-o", "status.so"]
    function = ctypes.CDLL(str(built("status.so", [command], source))).status_string
    function.restype = ctypes.c_char_p
    return function
