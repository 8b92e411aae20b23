"""What tests compile, kept in the cache of kernels: the workers of a parallel run share it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tile2cu_runtime import cache, paths
from tile2cu_runtime.compile import Build, host_flags, precompiled_headers
from tile2cu_runtime.compilers import find_gxx, find_nvcc


def built(
    output: str, commands: Sequence[Sequence[str]], *sources: Path, texts: Mapping[str, str] | None = None
) -> Path:
    """What the commands, g++'s and nvcc's, write to `output` in their folder. They read the tl headers, these sources,
    and `texts`, which are files of their folder by name.
    """
    texts = texts or {}
    content = [cache.tree_key(paths.headers_dir()), *texts, *texts.values(), *(each.read_bytes() for each in sources)]

    def make(temporary: Path, place: Path) -> None:
        for name, text in texts.items():
            (temporary / name).write_text(text, encoding="utf-8")
        for command in commands:
            subprocess.run(command, cwd=temporary, check=True)

    compilers = {(find_nvcc if Path(program).name == "nvcc" else find_gxx)().version for program, *_ in commands}
    words: list[str] = [word for command in commands for word in (*command, "\n")]
    key = cache.content_key(*sorted(compilers), *words, *content)
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
