"""A folder that another project can own: kernels, the tl headers that they use, and how to build them with CMake."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from textwrap import fill

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.record import Record
from tile2cu.emitter.execution import compiler_of
from tile2cu.project.headers import Headers, amalgamated, beside, in_namespace, vendored, version_of
from tile2cu.project.job import Outcome
from tile2cu.project.vendor_cmake import cmake_lists, libraries_of, needs
from tile2cu.targets import find
from tile2cu.version import VERSION

_PLAIN_C = re.compile(r"^#include <tl/(status|dtype)\.h>\n", re.MULTILINE)  # what launchers' headers include
_MACHINES = {"sm_90a": "sm90", "sm_100a": "sm90", "gfx90a": "cdna", "gfx942": "cdna", "gfx950": "cdna"}


class Options(Record, frozen=True, kw_only=True):
    """`single_header` joins the headers into one; `with_cpu` adds the CPU engine, so that the kernels run on a CPU."""

    single_header: bool = False
    with_cpu: bool = False


def vendor(outcomes: Sequence[Outcome], options: Options) -> dict[str, str]:
    """The files of the folder, by their path in it. Raises T2C-C017 for options that exclude each other."""
    from tile2cu_runtime.paths import engine_dir, headers_dir

    targets = sorted({target for outcome in outcomes for target in outcome.job.targets})
    sides = {target.partition(":")[0] for target in targets} | ({"host"} if options.with_cpu else set())
    if options.single_header and len(sides) > 1:
        raise Tile2CuError(
            "T2C-C017",
            f"a single header is for one of {', '.join(sorted(sides))}",
            help="leave out --single-header, or vendor each into a folder of its own",
        )
    kernels = _kernels(outcomes)
    on_cutlass = any(needs(kernels, name) for name in kernels if name.endswith(".cu"))
    if on_cutlass and (options.single_header or options.with_cpu):
        option = "--single-header" if options.single_header else "--with-cpu"
        raise Tile2CuError(
            "T2C-C017",
            f"{option} is not for the style `cute`, which includes CUTLASS",
            help="leave it out, or vendor kernels of `--style tl`",
        )
    engine = _engine(engine_dir()) if options.with_cpu else {}
    headers = Headers(headers_dir())
    kept = headers.needed(
        [*(text for name, text in kernels.items() if not name.endswith(".json")), *engine.values()],
        sides=sides,
        machines={machine for target in targets if (machine := _MACHINES.get(target.partition(":")[2]))},
    )
    version = version_of({name: headers.texts[name] for name in kept})
    notice = f"SPDX-License-Identifier: MIT -- tile2cu {VERSION}, LICENSE"
    if options.single_header:
        runtime = {"include/tl/tl.h": amalgamated(headers, kept, version, notice)}
        for name in beside(kept):  # its names are in there, too
            runtime[f"include/tl/{name}"] = f'#pragma once\n#include "{"../" * name.count("/")}tl.h"\n'
        kernels = {name: _self_contained(text, headers) for name, text in kernels.items()}
    else:
        runtime = {f"include/tl/{name}": text for name, text in vendored(headers, kept, version, notice).items()}
    files = {
        **{f"kernels/{name}": text for name, text in kernels.items()},
        **runtime,
        **{f"engine/{name}": in_namespace(text, version) for name, text in engine.items()},
        "CMakeLists.txt": cmake_lists(kernels, sorted(engine)),
        "LICENSE": _licence(),
    }
    files["README.md"] = _readme(files, targets, version, options, kernels, on_cutlass=on_cutlass)
    return dict(sorted(files.items()))


def _kernels(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """The kernels' files in folders as they lie in the project."""
    top = Path(os.path.commonpath([outcome.job.folder.absolute() for outcome in outcomes]))
    files: dict[str, str] = {}
    for outcome in outcomes:
        below = PurePosixPath(outcome.job.folder.absolute().relative_to(top).as_posix())
        for one in outcome.emitted:
            files |= {str(below / name): text for name, text in one.files.items()}
    return dict(sorted(files.items()))


def _engine(folder: Path) -> dict[str, str]:
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(folder.iterdir())
        if path.suffix in (".h", ".cpp")
    }


def _self_contained(text: str, headers: Headers) -> str:
    """A launcher's header that needs no other: its includes are inlined, with include guards."""

    def stands_in_it(include: re.Match[str]) -> str:
        return f"/* clang-format off */\n{headers.texts[f'{include[1]}.h']}/* clang-format on */\n"

    return _PLAIN_C.sub(stands_in_it, text)


def _licence() -> str:
    """tile2cu's licence, which the headers are under."""
    from tile2cu_runtime.paths import licence_file

    return licence_file().read_text(encoding="utf-8")


def _commands(names: Sequence[str], *, on_cutlass: bool) -> str:
    """A compiler's call for each target."""
    also = " --expt-relaxed-constexpr -DNDEBUG -I$CUTLASS_PATH/include" if on_cutlass else ""
    calls = []
    for target in map(find, names):
        included, file = ("-Iinclude", "NAME.hip") if target.is_amd else (f"-Iinclude{also}", "NAME.cu")
        calls.append(f"    {compiler_of(target)} {included} -c kernels/{file}")
    return "\n".join(calls)


def _readme(
    files: dict[str, str],
    targets: Sequence[str],
    version: str,
    options: Options,
    kernels: dict[str, str],
    *,
    on_cutlass: bool,
) -> str:
    manifests = (json.loads(text) for name, text in files.items() if name.endswith(".json"))
    sources = ", ".join(dict.fromkeys(manifest["source"]["file"] for manifest in manifests))
    headers = "the one header" if options.single_header else "the headers"
    about = (
        f"`kernels/` holds a `.cu`, a `.h` and a manifest (`.json`) for each kernel, made from {sources} "
        f"for {', '.join(targets)}. `include/tl` holds {headers} that they include: C++17, "
        + ("and CUTLASS's headers, for which CMake looks in CUTLASS_PATH." if on_cutlass else "nothing else is needed.")
        + (" `engine/` runs the kernels on a CPU." if options.with_cpu else "")
    )
    return _README.format(
        version=VERSION,
        about=fill(about, 120),
        library=libraries_of(kernels)[-1],
        header=max((name for name in kernels if name.endswith(".h")), key=lambda name: name.endswith("_dispatch.h")),
        commands=_commands(targets, on_cutlass=on_cutlass),
        namespace=version,
    )


_README = """\
# Kernels written by tile2cu {version}

{about}

Build with CMake; the first lines of CMakeLists.txt name all libraries:

    add_subdirectory(path/to/this/folder)
    target_link_libraries(your_program PRIVATE {library})

Or compile each `.cu` separately:

{commands}

Call: `#include "{header}"`. The `.h` of a kernel is plain C and declares the arguments. A launcher starts the kernel on
the stream that it is given and returns a `tl_status`; it never throws, exits, allocates or synchronises.

Copies of several versions of these headers may be in one binary: all of `tl` is in the inline namespace
`{namespace}`, which is named for its content.

Do not edit: change the Python file and run `tile2cu vendor` again. `tile2cu vendor --check` checks whether these files
are current. The headers are under the MIT licence (LICENSE); the kernels are under that of the Python files.
"""
