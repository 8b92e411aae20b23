"""Builds a source for the CPU engine in a folder, and loads it without a Python binding or a cache."""

from __future__ import annotations

from pathlib import Path

from tests.quick_binding import QuickLibrary, compile_command, link
from tile2cu.emitter import Emitted
from tile2cu_runtime.compile import host_build, run_compiler
from tile2cu_runtime.engine import EngineOptions, load_engine
from tile2cu_runtime.kernel import Kernel, Run
from tile2cu_runtime.report import SourceMap
from tile2cu_runtime.spec import read_manifest


def quick_load(emitted: Emitted, folder: Path, schedules: tuple[str, ...]) -> Kernel:
    """The kernel on the CPU engine, every check on."""
    for name, content in emitted.files.items():
        (folder / name).write_text(content, encoding="utf-8")
    manifest = read_manifest(next(folder.glob("*.json")))
    assert not manifest.workspace, "programs with workspaces take the runtime's own way"
    build = host_build(manifest.text_file, check=True, warp_size=manifest.warp_size)
    run_compiler(compile_command(manifest, build, folder, folder), folder, manifest.text_file)
    load_engine()
    library = QuickLibrary(
        folder=folder, module=manifest.entry, path=link(folder, manifest.entry), seconds=0.0, manifest=manifest
    )
    options = EngineOptions(check=True, schedule=schedules[0])
    run = Run(device="cpu", options=options, schedules=schedules, raise_findings=True)
    return Kernel(manifest, folder, library, run, SourceMap.of(manifest, folder, None))
