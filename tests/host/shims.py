"""Emitted sources with a shim, and libraries of them for the CPU engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tile2cu.api import emit_text
from tile2cu.core.origin import EmitOptions
from tile2cu.targets import find
from tile2cu_runtime.compile import Build, host_flags, precompiled_headers
from tile2cu_runtime.compilers import find_gxx
from tile2cu_runtime.engine import load_engine
from tile2cu_runtime.paths import headers_dir

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def emitted(file: Path, kind: str, folder: Path) -> dict[str, str]:
    """Writes a kernel's files with a shim into a folder; the texts by name."""
    (one,) = emit_text(file, kernel=None, target=find("cuda:sm_80"), bindings={}, options=EmitOptions(shims=(kind,)))
    for name, text in one.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return dict(one.files)


def build(
    gxx: str,
    folder: Path,
    kind: str,
    includes: list[str],
    link: list[str],
    name: str,
    defines: tuple[str, ...] = (),
    *,
    example: str = "linear_int4",
) -> Path:
    """An example with a shim, as a shared library."""
    emitted(EXAMPLES / f"{example}.py", kind, folder)
    flags = [f"-I{headers_dir()}", *(word for path in includes for word in ("-isystem", path))]
    kernel = [gxx, "-x", "c++", *host_flags(check=False), *flags, "-c", f"{example}.cu"]
    shim = [gxx, "-std=c++20" if kind == "torch" else "-std=c++17", "-O0", "-fPIC", "-Wall", "-Werror", "-DTL_ON_CPU"]
    shim += [f"-D{define}" for define in defines]
    kind = kind.replace("-", "_")
    objects = [f"{example}.o", f"{example}_{kind}.o"]
    for command in (kernel, [*shim, *flags, "-c", f"{example}_{kind}.cpp"]):
        subprocess.run(command, cwd=folder, check=True)
    subprocess.run([gxx, "-shared", *objects, str(load_engine().path), *link, "-o", name], cwd=folder, check=True)
    return folder / name


def compiled(gxx: str, source: Path) -> str:
    """The object of an emitted source or dispatch, in its folder: without optimisations, and with no warning."""
    command = (gxx, "-x", "c++", *host_flags(check=False), "-O0", "-I", str(headers_dir()))
    library = precompiled_headers(Build(compile=command, link=(), identity=find_gxx().version))
    output = f"{source.stem}.o"
    subprocess.run([*command, *library, "-Werror", "-c", source.name, "-o", output], cwd=source.parent, check=True)
    return output


def torch_include() -> Path:
    import torch

    return Path(torch.__file__).parent / "include"


def torch_link() -> list[str]:
    """What a library with the torch shim is linked to."""
    libraries = torch_include().parent / "lib"
    return [f"-L{libraries}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{libraries}"]
