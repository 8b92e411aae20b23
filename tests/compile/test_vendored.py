"""A vendored folder is all that its kernels need: it compiles alone, beside another version, and by its own CMake."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tile2cu.cli import main
from tile2cu_runtime.compilers import cutlass_include

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
# Atomics, a scan, a reduction of integers, a vote: what no example has.
ODD = """\
import tilelang.language as T


def odd(N, block=128):
    @T.prim_func
    def body(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), S: T.Tensor((1,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            tile = T.alloc_shared((block,), "float32")
            T.copy(A[bx * block], tile)
            T.cumsum(tile)
            for i in T.Parallel(block):
                T.atomic_add(S[0], tile[i])
            T.copy(tile, B[bx * block])

    return body
"""
PROJECT = f"""\
[tool.tile2cu]
output = "out"

[[tool.tile2cu.kernels]]
file = "{EXAMPLES}/vector_add.py"
targets = ["cuda:sm_80", "cuda:sm_90a"]
"""


def run(*command: object, cwd: Path | None = None) -> str:
    """What a command printed; fails the test with it when the command fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=600)
    printed = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(words)}\n{printed}"
    return printed


def vendored(folder: Path, *arguments: object) -> Path:
    assert main(["vendor", *map(str, arguments), "-o", str(folder)]) == 0
    return folder


def nvcc_compiles(nvcc: str, folder: Path, text: str, arch: str, out: Path, *more: str) -> None:
    flags = [*more, "-std=c++17", "-O3", "-Werror=all-warnings", "-Xcompiler=-Wall,-Wextra,-Werror", "-Iinclude"]
    run(nvcc, *flags, f"-gencode=arch=compute_{arch},code=sm_{arch}", "-c", text, "-o", out, cwd=folder)


@pytest.mark.parametrize(
    ("example", "arch", "options"),
    [  # NVRTC compiles others for each change
        pytest.param("attention.py", "80", ["-D", "is_causal=True"], marks=pytest.mark.nightly),
        ("gemm_relu.py", "90a", ["-D", "block_N=256", "-D", "block_K=64", "-D", "threads=256", "--single-header"]),
        pytest.param("odd.py", "80", ["--single-header"], marks=pytest.mark.nightly),
    ],
)
def test_nvcc_compiles_the_folder_alone(example: str, arch: str, options: list[str], nvcc: str, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD, encoding="utf-8")
    source = EXAMPLES / example if (EXAMPLES / example).exists() else tmp_path / example
    folder = vendored(tmp_path / "out", source, "--target", f"cuda:sm_{arch}", *options)
    for text in (folder / "kernels").glob("*.cu"):
        nvcc_compiles(nvcc, folder, str(text.relative_to(folder)), arch, tmp_path / "kernel.o")


@pytest.mark.parametrize("example", ["odd.py", "attention.py"])
def test_the_headers_kept_are_enough_on_the_cpu(example: str, gxx: str, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD, encoding="utf-8")
    source = EXAMPLES / example if (EXAMPLES / example).exists() else tmp_path / example
    binding = "is_causal=True" if example == "attention.py" else "N=512"
    folder = vendored(tmp_path / "out", source, "--with-cpu", "-D", binding)
    (text,) = (folder / "kernels").glob("*.cu")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{folder / 'include'}"]
    run(gxx, "-x", "c++", *flags, text)
    (tmp_path / "main.c").write_text(f'#include "{text.stem}.h"\n', encoding="utf-8")
    run(gxx, "-x", "c", "-std=c99", "-pedantic", *flags[1:], f"-I{folder / 'kernels'}", tmp_path / "main.c")


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("options", [["--single-header"], []])
def test_clang_compiles_the_folder_alone_for_amd(options: list[str], clang_hip: str, tmp_path: Path) -> None:
    folder = vendored(tmp_path / "out", EXAMPLES / "row_softmax.py", "--target", "hip:gfx942", "-D", "N=512", *options)
    flags = ["-std=c++17", "-O3", "-Wall", "-Wextra", "-Werror", "-Iinclude"]
    # Without HIP's headers, whether or not this machine has them.
    device = ["--cuda-device-only", "--offload-arch=gfx942", "-nogpuinc", "-nogpulib", "-DTL_HIP_STANDALONE"]
    run(clang_hip, "-x", "hip", *flags, *device, "-c", "kernels/row_softmax.hip", "-o", tmp_path / "k.o", cwd=folder)


def test_a_launchers_header_needs_no_other_beside_a_single_header(gxx: str, tmp_path: Path) -> None:
    folder = vendored(tmp_path / "out", EXAMPLES / "vector_add.py", "--single-header")
    (tmp_path / "both.c").write_text('#include "vector_add.h"\n#include "vector_add.h"\n', encoding="utf-8")
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    run(gxx, "-x", "c", *flags, f"-I{folder / 'kernels'}", tmp_path / "both.c")
    assert [path.name for path in (folder / "include/tl").iterdir()] == ["tl.h"]


@pytest.mark.parametrize("compiler", ["gxx", pytest.param("nvcc", marks=pytest.mark.nightly)])
def test_two_versions_live_in_one_binary(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """No symbol of the headers may be shared: the linker would keep one of two different ones."""
    program: str = request.getfixturevalue(compiler)
    options = ["--with-cpu"] if compiler == "gxx" else []
    first = vendored(tmp_path / "first", EXAMPLES / "vector_add.py", *options)
    headers = tmp_path / "headers"
    run("cp", "-r", ROOT / "headers", headers)
    launch = headers / "tl/common/launch.h"
    launch.write_text(
        launch.read_text(encoding="utf-8").replace("return TL_OK;", "return TL_OK + 0;"), encoding="utf-8"
    )
    monkeypatch.setattr("tile2cu_runtime.paths.headers_dir", lambda: headers)
    second = vendored(tmp_path / "second", EXAMPLES / "row_softmax.py", "-D", "N=512", *options)
    symbols = []
    for folder, name in ((first, "vector_add"), (second, "row_softmax")):
        text, out = f"kernels/{name}.cu", tmp_path / f"{name}.o"
        if compiler == "nvcc":
            nvcc_compiles(program, folder, text, "80", out, "-Xcompiler=-fno-inline")
        else:
            run(program, "-x", "c++", "-std=c++17", "-fPIC", "-w", "-Iinclude", "-c", text, "-o", out, cwd=folder)
        listed = run("nm", "-C", "--defined-only", tmp_path / f"{name}.o")
        symbols.append({line[19:] for line in listed.splitlines() if "tl::" in line})
        assert all(re.search(r"tl::v[0-9a-f]{12}::", symbol) for symbol in symbols[-1])
    assert symbols[0] and symbols[1]
    versions = [{found for symbol in each for found in re.findall("tl::(v[0-9a-f]+)", symbol)} for each in symbols]
    assert [len(each) for each in versions] == [1, 1] and versions[0] != versions[1]
    run(program, "-shared", "-o", tmp_path / "both.so", tmp_path / "vector_add.o", tmp_path / "row_softmax.o")


@pytest.mark.nightly  # for each change nvcc compiles a folder alone, above
@pytest.mark.needs("cmake")
def test_its_cmake_builds_for_a_gpu(nvcc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    vendored(tmp_path / "out")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(engine LANGUAGES CXX)\nadd_subdirectory(out)\n"
        "add_library(engine STATIC main.cpp)\n"
        "target_link_libraries(engine tile2cu_vector_add_dispatch)\n",
        encoding="utf-8",
    )
    (tmp_path / "main.cpp").write_text('#include "vector_add_dispatch.h"\n', encoding="utf-8")
    run("cmake", "-S", ".", "-B", "build", f"-DCMAKE_CUDA_COMPILER={nvcc}", cwd=tmp_path)
    run("cmake", "--build", "build", "-j", "2", cwd=tmp_path)
    assert (tmp_path / "build/out/libtile2cu_kernels_sm_90a.a").exists()


@pytest.mark.nightly
@pytest.mark.needs("cmake", "cutlass")
def test_its_cmake_builds_with_the_headers_of_cutlass(
    nvcc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no target of CUTLASS's exists, as in its own tree, its headers are looked for in CUTLASS_PATH."""
    vendored(tmp_path / "out", EXAMPLES / "vector_add.py", "--style", "cute")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.21)\nproject(engine LANGUAGES CXX)\nadd_subdirectory(out)\n"
        "add_library(engine STATIC main.cpp)\ntarget_link_libraries(engine tile2cu_kernels)\n",
        encoding="utf-8",
    )
    (tmp_path / "main.cpp").write_text('#include "vector_add.h"\n', encoding="utf-8")
    monkeypatch.setenv("CUTLASS_PATH", str(cutlass_include().parent))
    listed = ("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DCMAKE_CUDA_COMPILER={nvcc}")
    run("cmake", "-S", ".", "-B", "build", *listed, cwd=tmp_path)
    commands = (tmp_path / "build/compile_commands.json").read_text(encoding="utf-8")
    (entry,) = (each for each in json.loads(commands) if each["file"].endswith("vector_add.cu"))
    assert "-DNDEBUG" in shlex.split(entry["command"]), "an assertion of CuTe would make ptxas serialise wgmmas"
    run("cmake", "--build", "build", "-j", "1", cwd=tmp_path)
    assert (tmp_path / "build/out/libtile2cu_kernels.a").exists()


@pytest.mark.parametrize("option", ["--single-header", "--with-cpu"])
def test_kernels_that_include_cutlass_are_for_a_gpu_and_several_headers(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [EXAMPLES / "vector_add.py", "--style", "cute", option, "-o", tmp_path / "out"]
    assert main(["vendor", *map(str, given)]) == 1
    assert f"{option} is not for the style `cute`" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


MAIN = """\
#include <cstdio>
#include <cstring>
#include <vector>

#include "vector_add.h"
#include <tl/host/engine.h>

int main() {
  tl_engine_options options = {};
  options.check = 1;
  tl_engine_set_options(&options);
  const int n = 1000;
  float* a = static_cast<float*>(tl_engine_alloc(n * sizeof(float), 1));
  float* b = static_cast<float*>(tl_engine_alloc(n * sizeof(float), BIT));
  float* c = static_cast<float*>(tl_engine_alloc(n * sizeof(float), 0));
  for (int i = 0; i < n; i++) a[i] = i;
  if (BIT) for (int i = 0; i < n; i++) b[i] = 2 * i;
  const tl_status status = vector_add(a, b, c, n ARGUMENTS);
  int wrong = 0;
  for (int i = 0; i < n; i++) wrong += c[i] != 3 * i;
  const char* report = tl_engine_report_json();
  std::printf("status %d wrong %d faults %d\\n", status, wrong, std::strstr(report, "uninit") != nullptr);
}
"""


@pytest.mark.needs("cmake")
def test_its_cmake_builds_for_a_cpu_with_checks(gxx: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The engine's sources without a warning. For each change CMake only finds them; a build takes 30 s of CPU time."""
    folder = vendored(tmp_path / "out", EXAMPLES / "vector_add.py", "--with-cpu")
    declared = re.search(r"vector_add\(([^)]*)\);", (folder / "kernels/vector_add.h").read_text(encoding="utf-8"))
    assert declared
    rest = ["0" if "size_t" in each else "nullptr" for each in declared[1].split(",")[4:]]
    main_text = MAIN.replace("ARGUMENTS", "".join(f", {each}" for each in rest))
    (tmp_path / "sound.cpp").write_text(main_text.replace("BIT", "1"), encoding="utf-8")
    (tmp_path / "faulty.cpp").write_text(main_text.replace("BIT", "0"), encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(engine LANGUAGES CXX)\n"
        "set(TILE2CU_CPU ON)\nset(TILE2CU_CHECK ON)\nadd_subdirectory(out)\n"
        "target_compile_options(tile2cu_engine PRIVATE -Wall -Wextra -Werror)\n"
        "add_executable(sound sound.cpp)\ntarget_link_libraries(sound tile2cu_kernels)\n"
        "add_executable(faulty faulty.cpp)\ntarget_link_libraries(faulty tile2cu_kernels)\n",
        encoding="utf-8",
    )
    run("cmake", "-S", ".", "-B", "build", "-DCMAKE_POLICY_DEFAULT_CMP0077=NEW", cwd=tmp_path)
    if not request.config.getoption("--nightly"):
        return
    run("cmake", "--build", "build", "-j", "2", cwd=tmp_path)
    assert run(tmp_path / "build/sound") == "status 0 wrong 0 faults 0\n"
    assert "faults 1" in run(tmp_path / "build/faulty")
