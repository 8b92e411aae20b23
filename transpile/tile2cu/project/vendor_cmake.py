"""The CMakeLists.txt of a vendored folder: it needs neither Python nor tile2cu."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from tile2cu.core.record import Record

_GPU = """\
project(tile2cu_kernels LANGUAGES CXX @languages@)
"""
# What the engine's headers need is in runtime/tile2cu_runtime/compile.py, with the reasons.
_CPU = """\
option(TILE2CU_CPU "Build the kernels for the CPU engine, not for a GPU" OFF)
option(TILE2CU_CHECK "With TILE2CU_CPU: let the engine see every access (include/tl/host/engine.h: check)" OFF)
if(TILE2CU_CPU)
  project(tile2cu_kernels LANGUAGES CXX)
  find_package(Threads REQUIRED)
  add_library(tile2cu_engine SHARED
@sources@
  )
  target_include_directories(tile2cu_engine PUBLIC include PRIVATE engine)
  target_precompile_headers(tile2cu_engine PRIVATE engine/worker.h)
  target_compile_features(tile2cu_engine PUBLIC cxx_std_17)
  target_compile_options(tile2cu_engine PUBLIC -fno-strict-aliasing -Wno-unknown-pragmas -Wno-psabi)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(tile2cu_engine PUBLIC -mf16c)
  endif()
  target_link_libraries(tile2cu_engine PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
  set(tile2cu_language "-x;c++")
  if(TILE2CU_CHECK)
    list(APPEND tile2cu_language -g -Og -fsanitize=thread,bounds --param=tsan-instrument-func-entry-exit=0 -Wno-tsan)
  endif()
else()
  project(tile2cu_kernels LANGUAGES CXX @languages@)
endif()
"""
_LIBRARY = """\

add_library(@library@ STATIC
@sources@
)
target_include_directories(@library@ PUBLIC kernels include)
set_target_properties(@library@ PROPERTIES
  @language@_STANDARD 17 @language@_ARCHITECTURES @architecture@ POSITION_INDEPENDENT_CODE ON)
"""
# Vendored inside CUTLASS's own tree, or where its package is installed, its target has the headers.
_CUTLASS = """\

find_package(NvidiaCutlass CONFIG QUIET)
if(NOT TARGET nvidia::cutlass::cutlass)
  find_path(CUTLASS_INCLUDE_DIR cute/tensor.hpp HINTS "$ENV{CUTLASS_PATH}/include" NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  add_library(tile2cu_cutlass INTERFACE)
  target_include_directories(tile2cu_cutlass SYSTEM INTERFACE ${CUTLASS_INCLUDE_DIR})
  add_library(nvidia::cutlass::cutlass ALIAS tile2cu_cutlass)
endif()
"""
_LIBRARY_ON_CUTLASS = """\
target_link_libraries(@library@ PRIVATE nvidia::cutlass::cutlass)
# An assertion of CuTe is a call, which makes ptxas serialise wgmmas.
target_compile_options(@library@ PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-DNDEBUG>")
"""
_TABLE = """\

add_library(@library@ STATIC kernels/@table@)
target_link_libraries(@library@ PUBLIC @kernels@)
"""
_LIBRARY_ON_CPU = """\
if(TILE2CU_CPU)
  set_source_files_properties(
@sources@
    PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "${tile2cu_language}")
  target_link_libraries(@library@ PUBLIC tile2cu_engine)
endif()
"""


class _Library(Record, frozen=True, kw_only=True):
    """The sources of one folder for one target. `language` and `architecture` are CMake's."""

    name: str
    language: str
    architecture: str
    texts: tuple[str, ...]
    on_cutlass: bool


def cmake_lists(kernels: Mapping[str, str], engine: Sequence[str]) -> str:
    """The text: a static library for each folder of `kernels`, for a GPU or, with `engine`'s sources, for a CPU."""
    libraries = _libraries(kernels)
    tables = [name for name in kernels if name.endswith("_dispatch.cpp")]
    names = "".join(f"#   {name}\n" for name in libraries_of(kernels))
    text = (
        f"# The kernels of this folder: add_subdirectory() it and link\n{names}"
        "# Their headers are included as they lie below kernels/. Written by tile2cu vendor.\n"
        "cmake_minimum_required(VERSION 3.21)\n"
    )
    languages = " ".join(sorted({library.language for library in libraries}))
    compiled = [name for name in engine if name.endswith(".cpp")]
    text += _filled(_CPU if engine else _GPU, sources=_lines("engine", compiled), languages=languages)
    text += _CUTLASS if any(library.on_cutlass for library in libraries) else ""
    for library in libraries:
        parts = [_LIBRARY, *[_LIBRARY_ON_CPU] * bool(engine), *[_LIBRARY_ON_CUTLASS] * library.on_cutlass]
        for part in parts:
            text += _filled(
                part,
                library=library.name,
                language=library.language,
                architecture=library.architecture,
                sources=_lines("kernels", library.texts),
            )
    for table, name in zip(tables, _tables(kernels), strict=True):
        text += _filled(_TABLE, library=name, table=table, kernels=_names_beside(table, libraries))
    return text


def libraries_of(kernels: Mapping[str, str]) -> list[str]:
    """The names of the libraries: of folders, then of dispatches."""
    return [*(library.name for library in _libraries(kernels)), *_tables(kernels)]


def _tables(kernels: Mapping[str, str]) -> list[str]:
    """The names of the dispatches' libraries; with the folder, where several folders have a dispatch of one name."""
    tables = [PurePosixPath(name) for name in kernels if name.endswith("_dispatch.cpp")]
    stems = [table.stem for table in tables]
    return [
        re.sub(
            r"\W", "_", "_".join(["tile2cu", *(table.parent.parts if stems.count(table.stem) > 1 else ()), table.stem])
        )
        for table in tables
    ]


def _names_beside(table: str, libraries: Sequence[_Library]) -> str:
    """The libraries of the kernels that a dispatch chooses from: those in its folder."""
    folder = PurePosixPath(table).parent
    return " ".join(each.name for each in libraries if PurePosixPath(each.texts[0]).parent == folder)


def _libraries(kernels: Mapping[str, str]) -> list[_Library]:
    """A library for each folder; where that has sources for several targets, for each of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in kernels:
        if name.endswith((".cu", ".hip")):
            manifest = json.loads(kernels[f"{name.rpartition('.')[0]}.json"])
            found.setdefault((str(PurePosixPath(name).parent), manifest["target"]), []).append(name)
    folders = [folder for folder, _ in found]
    return [
        _library(
            folder, target, texts, folders.count(folder) > 1, on_cutlass=any(needs(kernels, each) for each in texts)
        )
        for (folder, target), texts in found.items()
    ]


def needs(kernels: Mapping[str, str], source: str) -> list[str]:
    """What a source includes in addition to tl: `cutlass`."""
    found: list[str] = json.loads(kernels[f"{source.rpartition('.')[0]}.json"]).get("needs", [])
    return found


def _library(folder: str, target: str, texts: Sequence[str], shared_folder: bool, *, on_cutlass: bool) -> _Library:
    language, _, chip = target.partition(":")
    parts = [part for part in folder.split("/") if part != "."] + ([chip] if shared_folder else [])
    number = chip.removeprefix("sm_")
    return _Library(
        name=re.sub(r"\W", "_", "_".join(["tile2cu_kernels", *parts])),
        language=language.upper(),
        # Code for sm_90a and its like runs on that architecture alone, so no PTX is included.
        architecture=number if number.isdigit() or language == "hip" else f"{number}-real",
        texts=tuple(texts),
        on_cutlass=on_cutlass,
    )


def _lines(folder: str, names: Sequence[str]) -> str:
    return "\n".join(f"    {folder}/{name}" for name in names)


def _filled(template: str, **values: str) -> str:
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template
