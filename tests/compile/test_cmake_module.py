"""find_package(tile2cu): kernels are emitted at build time, and again when what they were made from changes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tile2cu.cli import main

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """\
import tilelang.language as T
from shapes import FACTOR


def scale(N, block=128):
    @T.prim_func
    def body(A: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                A[bx * block + i] = A[bx * block + i] * FACTOR

    return body
"""
# The sources are compiled as C++ for the CPU engine: no CUDA compiler is needed to see that they are built.
LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(engine LANGUAGES CXX)
enable_testing()
find_package(tile2cu REQUIRED)
{calls}
foreach(library IN ITEMS {libraries})
  get_target_property(sources ${{library}} TILE2CU_SOURCES)
  set_source_files_properties(${{sources}} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;c++;-O0;-w")
  get_target_property(architectures ${{library}} CUDA_ARCHITECTURES)
  message(STATUS "${{library}}: ${{architectures}} ")
endforeach()
install(TARGETS {libraries} EXPORT engine ARCHIVE DESTINATION lib PUBLIC_HEADER DESTINATION include)
install(EXPORT engine DESTINATION lib/cmake/engine NAMESPACE engine:: FILE engineConfig.cmake)
"""


class Project:
    """A folder with a CMake project that finds the module of this checkout."""

    def __init__(self, folder: Path, gxx: str, module: str) -> None:
        script = folder / "bin" / "tile2cu"
        for path, text in (
            (script, f'#!/bin/sh\nPYTHONPATH={ROOT}/transpile:{ROOT}/runtime exec {sys.executable} -m tile2cu "$@"\n'),
            (folder / "kernels/scale.py", KERNEL),
            (folder / "kernels/shapes.py", "FACTOR = 2.0\n"),
            (folder / "user.cpp", '#include "scale.h"\n'),
        ):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        script.chmod(0o755)
        self.folder = folder
        self.options = [f"-Dtile2cu_DIR={module}", f"-Dtile2cu_COMMAND={script}", f"-DCMAKE_CXX_COMPILER={gxx}"]

    def cmake(self, *arguments: str, fails: bool = False) -> str:
        """What CMake prints; fails the test where its exit status is not the expected one."""
        done = subprocess.run(["cmake", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300)
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def configure(self, calls: str, libraries: str, *, fails: bool = False) -> str:
        lists = LISTS.format(calls=calls, libraries=libraries)
        (self.folder / "CMakeLists.txt").write_text(lists, encoding="utf-8")
        return self.cmake("-S", ".", "-B", "build", *self.options, fails=fails)


@pytest.fixture
def project(gxx: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Project:
    assert main(["--cmakedir"]) == 0
    return Project(tmp_path, gxx, capsys.readouterr().out.strip())


@pytest.mark.needs("cmake")
def test_kernels_are_emitted_at_build_time(project: Project) -> None:
    calls = """\
add_library(engine OBJECT user.cpp)
tile2cu_add_kernels(engine FILE kernels/scale.py DEFINES block=256 LINE python)
"""
    project.configure(calls, "engine_scale_sm_80")
    text = project.folder / "build/tile2cu/engine_scale_sm_80/scale.cu"
    assert not text.exists(), "configuring writes nothing"
    assert "tile2cu kernels/scale.py" in project.cmake("--build", "build")
    assert "block = 256" in text.read_text(encoding="utf-8") and "2.0f" in text.read_text(encoding="utf-8")
    assert '#line 10 "scale.py"' in text.read_text(encoding="utf-8")
    assert "tile2cu kernels/scale.py" not in project.cmake("--build", "build"), "nothing changed"
    (project.folder / "kernels/shapes.py").write_text("FACTOR = 3.0\n", encoding="utf-8")
    assert "tile2cu kernels/scale.py" in project.cmake("--build", "build"), "an import has changed"
    assert "3.0f" in text.read_text(encoding="utf-8")


@pytest.mark.nightly  # for each change: targets of one call, below
@pytest.mark.needs("cmake")
def test_each_library_has_the_architecture_of_its_target(project: Project) -> None:
    calls = """\
tile2cu_add_kernels(older FILE kernels/scale.py TARGET cuda:sm_80)
tile2cu_add_kernels(hopper FILE kernels/scale.py TARGET cuda:sm_90a NAME scale_90 STYLE tl SHIMS torch WITH_TEST)
add_library(engine OBJECT user.cpp)
target_link_libraries(engine PRIVATE tile2cu::older tile2cu::hopper)
get_target_property(shims hopper TILE2CU_SHIMS)
message(STATUS "shims: ${shims}")
"""
    said = project.configure(calls, "older hopper")
    assert "-- older: 80 " in said
    assert "-- hopper: 90a-real " in said
    assert "scale_90_torch.cpp" in said
    assert (
        "tile2cu.hopper.scale_90_test"
        in subprocess.run(
            ["ctest", "-N"], cwd=project.folder / "build", capture_output=True, text=True, check=True
        ).stdout
    )
    project.cmake("--build", "build", "--target", "older", "--target", "hopper")
    project.cmake("--install", "build", "--prefix", "installed", "--component", "Unspecified")
    installed = {str(path.relative_to(project.folder / "installed")) for path in project.folder.rglob("installed/**/*")}
    assert {"lib/libolder.a", "lib/libhopper.a", "include/scale.h", "include/scale_90.h"} <= installed
    assert "lib/cmake/engine/engineConfig.cmake" in installed
    exported = (project.folder / "installed/lib/cmake/engine/engineConfig.cmake").read_text(encoding="utf-8")
    assert str(project.folder) not in exported and "tile2cu::headers" not in exported


@pytest.mark.nightly
@pytest.mark.needs("cmake")
def test_sources_of_cute_are_compiled_without_its_assertions(project: Project) -> None:
    calls = """\
tile2cu_add_kernels(kernels FILE kernels/scale.py TARGET cuda:sm_90a STYLE cute)
get_target_property(options kernels COMPILE_OPTIONS)
message(STATUS "kernels: ${options}")
"""
    assert re.search(r"-- kernels: .*--expt-relaxed-constexpr;-DNDEBUG", project.configure(calls, "kernels"))


USER = """\
#include "scale_dispatch.h"
#include "scale_90.h"
int main() { return scale == nullptr || scale_90 == nullptr; }
"""


@pytest.mark.nightly  # for each change: the vendored folder's own CMake, by nvcc, in test_vendored.py
@pytest.mark.needs("cmake")
def test_nvcc_compiles_two_architectures_for_one_binary(project: Project, nvcc: str) -> None:
    (project.folder / "user.cpp").write_text(USER, encoding="utf-8")
    (project.folder / "CMakeLists.txt").write_text(
        """\
cmake_minimum_required(VERSION 3.20)
project(engine LANGUAGES CXX CUDA)
enable_testing()
find_package(tile2cu REQUIRED)
add_executable(engine user.cpp)
tile2cu_add_kernels(engine FILE kernels/scale.py TARGET cuda:sm_80 cuda:sm_90a WITH_TEST)
tile2cu_add_kernels(engine FILE kernels/scale.py TARGET cuda:sm_90a NAME scale_90)
""",
        encoding="utf-8",
    )
    project.cmake("-S", ".", "-B", "build", *project.options, f"-DCMAKE_CUDA_COMPILER={nvcc}")
    said = project.cmake("--build", "build", "--verbose")
    assert "compute_90a" in said and "sm_90a" in said
    subprocess.run([project.folder / "build/engine"], check=True)
    # The kernels' own tests run on a GPU; without one they are skipped.
    subprocess.run(["ctest", "--output-on-failure"], cwd=project.folder / "build", check=True)


@pytest.mark.needs("cmake")
def test_one_call_for_two_targets_is_one_library_with_a_dispatch(project: Project) -> None:
    calls = """\
tile2cu_add_kernels(kernels FILE kernels/scale.py TARGET cuda:sm_80 cuda:sm_90a SHIMS torch)
add_library(engine OBJECT user.cpp)
target_link_libraries(engine PRIVATE tile2cu::kernels)
get_target_property(shims kernels TILE2CU_SHIMS)
message(STATUS "shims: ${shims}")
foreach(chip IN ITEMS sm_80 sm_90a)
  get_target_property(architectures kernels_${chip} CUDA_ARCHITECTURES)
  message(STATUS "kernels_${chip}: ${architectures} ")
endforeach()
"""
    said = project.configure(calls, "kernels")
    assert "-- kernels_sm_80: 80 " in said and "-- kernels_sm_90a: 90a-real " in said
    assert "scale_sm_80_torch.cpp" in said and "scale_dispatch.cpp" not in said
    project.cmake("--build", "build", "--target", "kernels")
    symbols = subprocess.run(
        ["nm", "--defined-only", project.folder / "build/libkernels.a"], capture_output=True, text=True, check=True
    ).stdout
    assert {" T scale\n", " T scale_sm_80\n", " T scale_sm_90a\n"} <= set(
        f" T {line.partition(' T ')[2]}\n" for line in symbols.splitlines()
    )
    again = "tile2cu_add_kernels(kernels FILE kernels/scale.py TARGET cuda:sm_89)\n"
    said = " ".join(project.configure(calls + again, "", fails=True).split())
    assert "both define the function scale; name both after TARGET of one call" in said


@pytest.mark.nightly  # for each change: a second call with one name, above
@pytest.mark.needs("cmake")
def test_two_kernels_of_one_name_are_refused(project: Project) -> None:
    calls = """\
add_library(engine OBJECT user.cpp)
tile2cu_add_kernels(engine FILE kernels/scale.py TARGET cuda:sm_80)
tile2cu_add_kernels(engine FILE kernels/scale.py TARGET cuda:sm_90a)
"""
    said = " ".join(project.configure(calls, "", fails=True).split())
    assert "engine has the kernel scale for cuda:sm_80 and for cuda:sm_90a, and both define the function scale" in said
    named = calls.replace("sm_90a)", "sm_90a NAME scale_90)")
    project.configure(named, "engine_scale_sm_80 engine_scale_sm_90a")


@pytest.mark.needs("cmake")
def test_words_that_are_no_options_are_refused(project: Project) -> None:
    said = project.configure("tile2cu_add_kernels(engine FILE kernels/scale.py CHIP cuda:sm_80)", "", fails=True)
    assert "not understood: CHIP;cuda:sm_80" in said
