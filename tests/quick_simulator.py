"""Kernels for the AMD simulator and the PTX machine without a Python binding, as tests/quick_binding.py's for the CPU
engine: ctypes calls the launcher, and the functions of launches.h, which it calls, are compiled once for all kernels.

Compilers read a source twice, for the GPU and for the launcher. It takes clang a third of a build in ck_tile's style to
instantiate ck_tile's templates for kernels that the host does not run, and nvcc three fifths of every build. Here the
launcher is compiled without kernels.

A folder of tests whose conftest.py imports the fixture builds so, but its modules that are marked `binding`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.built import built
from tests.quick_binding import QuickLibrary
from tests.quick_launcher import HOST_FLAGS, compile_cuda
from tile2cu_runtime import binding, cache, paths
from tile2cu_runtime.compile import OBJECT, Build, ignored_by_ptxas, run_compiler
from tile2cu_runtime.compilers import find_gxx
from tile2cu_runtime.spec import Manifest

_LIBRARY = "kernel.so"
_IGNORED = "ptxas.txt"
_RUN_OF_KERNEL = re.compile(r"\bKernel\{\}\(kargs.*?\);")
_LAUNCHES = Path(binding.__file__).with_name("launches.h")


def launches() -> Path:
    """The object with the functions of CUDA's and HIP's runtimes that launchers call."""
    command = (find_gxx().path, *HOST_FLAGS, "-c", str(_LAUNCHES), "-o", "launches.o")
    return built("launches.o", [command], _LAUNCHES)


def launcher_alone(source: str) -> str:
    """An emitted source whose kernels are empty."""
    text, kernels = _RUN_OF_KERNEL.subn("", source)
    assert kernels == source.count("__global__ ")
    return text


def quick_library(manifest: Manifest, folder: Path, build: Build, *, device: str) -> binding.Library:
    """As binding.build_library, and takes its place in tests."""
    if device not in ("sim", "ptx") or manifest.workspace:  # the binding allocates the workspace
        return users_way(manifest, folder, build, device=device)
    sources = {name: (folder / name).read_bytes() for name in (manifest.text_file, manifest.header_file)}
    headers = cache.tree_key(paths.headers_dir())
    words = (build.identity, repr(build), manifest.entry, device, _LAUNCHES.read_bytes())
    key = cache.content_key(*words, *sources, *sources.values(), headers)

    def make(temporary: Path, place: Path) -> None:
        for name, content in sources.items():
            (temporary / name).write_bytes(content)
        what = f"the emitted source {manifest.text_file}"
        for step in build.before:
            source = sources[manifest.text_file]
            run_compiler(
                (*step, *binding._precompiled(manifest, source, replace(build, compile=step), device)), temporary, what
            )
        command = binding.compile_command(manifest, build, temporary, place, device=device)
        if "composable_kernel" in manifest.needs:
            launcher = temporary / f"launcher_of_{manifest.text_file}"
            launcher.write_text(
                launcher_alone((folder / manifest.text_file).read_text(encoding="utf-8")), encoding="utf-8"
            )
            command = tuple(launcher.name if word == manifest.text_file else word for word in command)
        if device == "ptx":
            output = compile_cuda(command, manifest.text_file, temporary)
        else:
            output = run_compiler(command, temporary, what)
        (temporary / _IGNORED).write_text("\n".join(ignored_by_ptxas(output)), encoding="utf-8")
        link = (find_gxx().path, "-shared", OBJECT, str(launches()), f"-Wl,-e,{manifest.entry}", "-o", _LIBRARY)
        run_compiler(link, temporary, "the library")
        binding._remove_scraps(temporary)

    started = time.perf_counter()
    entry = cache.get_or_build("tests", key, make)
    return QuickLibrary(
        folder=entry.folder,
        module=manifest.entry,
        path=entry.folder / _LIBRARY,
        seconds=time.perf_counter() - started if entry.built else 0.0,
        ignored=tuple((entry.folder / _IGNORED).read_text(encoding="utf-8").splitlines()),
        manifest=manifest,
    )


users_way = binding.build_library  # with the Python binding


@pytest.fixture(autouse=True, scope="module")
def quick_simulators(request: pytest.FixtureRequest, quick_bindings: None) -> Iterator[None]:
    """After tests/conftest.py's own, whose libraries for the CPU engine stay."""
    engine_way = binding.build_library

    def library(manifest: Manifest, folder: Path, build: Build, *, device: str) -> binding.Library:
        way = quick_library if device in ("sim", "ptx") else engine_way
        return way(manifest, folder, build, device=device)

    with pytest.MonkeyPatch.context() as patch:
        if not request.node.get_closest_marker("binding"):
            patch.setattr(binding, "build_library", library)
        yield
