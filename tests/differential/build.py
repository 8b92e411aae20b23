"""Builds a source for the CPU engine, and loads it without a Python binding.

tile2cu_runtime's way takes a second more per kernel; the executed code is the same.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from tile2cu.emitter import Emitted
from tile2cu_runtime.compile import OBJECT, host_build, precompiled_headers, run_compiler
from tile2cu_runtime.engine import EngineOptions, load_engine
from tile2cu_runtime.kernel import Kernel, Run
from tile2cu_runtime.report import SourceMap
from tile2cu_runtime.spec import Manifest, TensorArgument, read_manifest

# The source is compiled with hidden symbols.
_EXPORT = """\
int {entry}(void);
__attribute__((visibility("default"))) void* launcher(void) {{ return (void*)&{entry}; }}
"""
_NUMBERS = {"int32": ctypes.c_int, "int64": ctypes.c_int64, "float32": ctypes.c_float, "float64": ctypes.c_double}


class Launcher:
    """A library, and what its binding would be: calls the launcher."""

    def __init__(self, library: Path, manifest: Manifest) -> None:
        self.path, self.seconds = library, 0.0
        assert not manifest.workspace, "programs with workspaces take the runtime's own way"
        address = ctypes.CDLL(str(library)).launcher
        address.restype = ctypes.c_void_p
        self._address = address()
        self._types = [
            ctypes.c_void_p if isinstance(argument, TensorArgument) else _NUMBERS[argument.dtype]
            for argument in manifest.arguments
        ]

    def load(self) -> Launcher:
        return self

    def call(self, *values: Any) -> int:
        *arguments, stream = values
        typed = (make(value) for make, value in zip(self._types, arguments, strict=True))
        given = (*typed, ctypes.c_void_p(), ctypes.c_size_t(0), ctypes.c_void_p(stream))
        return int(ctypes.CFUNCTYPE(ctypes.c_int, *map(type, given))(self._address)(*given))

    def status_string(self, status: int) -> str:
        return f"status {status}"


def quick_load(emitted: Emitted, folder: Path, schedules: tuple[str, ...]) -> Kernel:
    """The kernel on the CPU engine, every check on."""
    for name, content in emitted.files.items():
        (folder / name).write_text(content, encoding="utf-8")
    manifest = read_manifest(next(folder.glob("*.json")))
    build = host_build(manifest.text_file, check=True, warp_size=manifest.warp_size)
    grouped = "#define TL_GROUP" in emitted.files[manifest.text_file]  # the headers are read below that, as they are
    precompiled = () if grouped else precompiled_headers(build)
    run_compiler((*build.compile, *precompiled), folder, manifest.text_file)
    load_engine()
    library = folder / "kernel.so"
    (folder / "export.c").write_text(_EXPORT.format(entry=manifest.entry), encoding="utf-8")
    run_compiler(
        (build.compile[0], "-shared", OBJECT, "-x", "c", "export.c", "-o", str(library)), folder, "the library"
    )
    options = EngineOptions(check=True, schedule=schedules[0])
    run = Run(device="cpu", options=options, schedules=schedules, raise_findings=True)
    return Kernel(manifest, folder, Launcher(library, manifest), run, SourceMap.of(manifest, folder, None))
