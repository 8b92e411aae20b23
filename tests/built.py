"""What tests compile, kept in the cache of kernels: the workers of a parallel run share it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tile2cu_runtime import cache, paths
from tile2cu_runtime.compile import Build, host_flags, precompiled_headers
from tile2cu_runtime.compilers import find_gxx


def built(output: str, commands: Sequence[Sequence[str]], *sources: Path) -> Path:
    """What the commands, g++'s, write to `output` in their folder. They read the tl headers, and these sources."""
    content = [cache.tree_key(paths.headers_dir()), *(source.read_bytes() for source in sources)]

    def make(temporary: Path, place: Path) -> None:
        for command in commands:
            subprocess.run(command, cwd=temporary, check=True)

    key = cache.content_key(find_gxx().version, *(word for command in commands for word in (*command, "\n")), *content)
    return cache.get_or_build("tests", key, make).folder / output


def built_for_engine(source: Path, *flags: str, check: bool) -> Path:
    """A source, with the header in its folder, as a library for the CPU engine, with the engine's hooks or without."""
    gxx, name = find_gxx(), f"{source.stem}{'_checked' if check else ''}.so"
    command = (gxx.path, "-x", "c++", *host_flags(check=check), *flags, "-I", str(paths.headers_dir()))
    before, _, _ = source.read_text(encoding="utf-8").partition("#include <tl/")
    changed = "#define" in before  # the headers' contents may depend on it
    headers = () if changed else precompiled_headers(Build(compile=command, link=(), identity=gxx.version))
    compiled = [*command, *headers, "-c", str(source)]
    own = [header] if (header := source.with_suffix(".h")).is_file() else []
    return built(name, [[*compiled, "-o", "text.o"], [gxx.path, "-shared", "text.o", "-o", name]], source, *own)
