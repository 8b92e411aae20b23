"""Building a binding: what is in the key, what a failure shows, what the compilers are told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tile2cu_runtime import (
    CompileError,
    DeviceError,
    ManifestError,
    OptionError,
    binding,
    builders,
    load_kernel,
    paths,
)
from tile2cu_runtime import device as devices
from tile2cu_runtime.compile import (
    cuda_build,
    gencode,
    host_build,
    ignored_by_ptxas,
    precompiled_headers,
    read_dependencies,
    run_compiler,
)
from tile2cu_runtime.compilers import find_gxx, find_nvcc
from tile2cu_runtime.spec import read_manifest

pytestmark = pytest.mark.usefixtures("cache", "no_engine", "gxx")
RUNTIME = Path(binding.__file__).parents[1]


def built(folder: Path, **options: Any) -> bool:
    """Loads the kernel; whether that built something."""
    return load_kernel(folder, device="cpu", **options).build_seconds > 0


def test_each_part_of_the_key_builds_anew(axpy: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert built(axpy) and not built(axpy)
    manifest = read_manifest(axpy / "axpy.json")
    for expected in (True, False):
        library = binding.build_library(manifest, axpy, host_build("axpy.cu", check=True), device="cpu")
        assert (library.seconds > 0) == expected, "flags are in the key"
    headers = Path(shutil.copytree(paths.headers_dir(), tmp_path / "headers"))
    monkeypatch.setattr(paths, "headers_dir", lambda: headers)
    assert not built(axpy), "headers are known by their content, not by their path"
    (headers / "tl" / "status.h").write_text(
        (headers / "tl" / "status.h").read_text(encoding="utf-8") + "/* edited */\n", encoding="utf-8"
    )
    assert built(axpy), "an edited header builds anew"
    (axpy / "axpy.cu").write_text((axpy / "axpy.cu").read_text(encoding="utf-8") + "// edited\n", encoding="utf-8")
    assert built(axpy), "an edited text builds anew"


def test_a_moved_cache_needs_no_build(axpy: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert built(axpy)
    moved = cache.with_name("moved")
    cache.rename(moved)
    monkeypatch.setenv("TILE2CU_CACHE", str(moved))
    assert not built(axpy)


LOAD = """
import sys
from tile2cu_runtime import kernel, load_kernel
class NoEngine: pass
kernel.load_engine = NoEngine
print(load_kernel(sys.argv[1], device="cpu").build_seconds > 0)
"""


def test_four_cold_processes_build_one_library(axpy: Path) -> None:
    search = os.pathsep.join(filter(None, [str(RUNTIME), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": search}
    command = [sys.executable, "-c", LOAD, str(axpy)]
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = sorted(process.communicate(timeout=600)[0].strip() for process in processes)
    assert answers == ["False", "False", "False", "True"]


def test_a_failed_compile_shows_the_command_and_keeps_the_file(axpy: Path) -> None:
    (axpy / "axpy.cu").write_text('#include "axpy.h"\nint broken = "text";\n', encoding="utf-8")
    with pytest.raises(CompileError) as raised:
        load_kernel(axpy, device="cpu")
    problem = raised.value
    assert problem.code == "T2C-R011" and "axpy.cu does not compile" in problem.message
    assert "axpy.cu:2:14: error" in problem.output
    assert (Path(problem.kept) / "axpy.cu").read_text(encoding="utf-8").endswith('"text";\n')
    again = subprocess.run(problem.command, shell=True, capture_output=True, text=True)
    assert again.returncode != 0 and "axpy.cu:2:14: error" in again.stderr, "the shown command can be run"
    for part in (problem.command, "axpy.cu:2:14: error", problem.kept):
        assert part in str(problem)


def test_a_missing_launcher_fails_at_the_import(axpy: Path) -> None:
    (axpy / "axpy.cu").write_text('#include "axpy.h"\n', encoding="utf-8")
    with pytest.raises(CompileError, match="undefined symbol: axpy"):
        load_kernel(axpy, device="cpu")


def test_a_missing_compiler_says_how_to_get_it(axpy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE2CU_CXX", "no-such-g++")
    with pytest.raises(CompileError) as raised:
        load_kernel(axpy, device="cpu")
    assert raised.value.code == "T2C-R010" and "apt-get install g++" in str(raised.value)


@pytest.mark.parametrize("package", ["cppimport", "setuptools"])
def test_a_missing_package_says_how_to_get_it(axpy: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is compiled."""
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("tile2cu_runtime.cache.get_or_build", lambda *given: pytest.fail("it builds"))
    with pytest.raises(CompileError, match=f"the Python package {package} is not installed") as raised:
        load_kernel(axpy, device="cpu")
    assert raised.value.code == "T2C-R010" and "pip install 'tile2cu[run]'" in str(raised.value)


def test_a_missing_nvcc_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tile2cu_runtime.compilers._nvcc_candidates", lambda: iter([str(tmp_path / "nvcc")]))
    with pytest.raises(CompileError, match="pip install 'cuda-toolkit"):
        find_nvcc()


def test_the_users_build_settings_do_not_matter(axpy: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """setuptools obeys setup.cfg and pyproject.toml of the current folder, and CC and CFLAGS."""
    (tmp_path / "setup.cfg").write_text("[build_ext]\ncompiler = nonsense\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\ndynamic = ["version"]\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", "nvcc")
    monkeypatch.setenv("CFLAGS", "--nonsense")
    assert built(axpy)


def test_folders_with_odd_names(axpy: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    odd = tmp_path / "it's a \u00e9, $HOME ${x} # %> folder"
    monkeypatch.setenv("TILE2CU_CACHE", str(odd / "cache"))
    assert built(Path(shutil.copytree(axpy, odd / "kernel")))


def test_a_cache_that_cannot_be_written(axpy: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path / "file"))
    with pytest.raises(CompileError, match="TILE2CU_CACHE") as raised:
        load_kernel(axpy, device="cpu")
    assert raised.value.code == "T2C-R015"


def test_a_binding_needs_no_python_header(axpy: Path) -> None:
    """Its own declarations of the stable ABI are enough: the build reads no Python.h."""
    numpy = pytest.importorskip("numpy")
    kernel = load_kernel(axpy, device="cpu")
    one = numpy.ones((2, 3), "float32")
    assert (kernel(one, one, 4.0) == 5).all()
    with pytest.raises(TypeError, match="axpy"):
        kernel._module.call(1, 2)
    with pytest.raises(TypeError):
        kernel._module.call("1", 2, 3, 4.0, 5, 6, 0)
    command = (
        find_gxx().path,
        "-std=c++17",
        "-MM",
        "-I",
        sysconfig.get_path("include"),
        "-I",
        str(paths.headers_dir()),
    )
    binding_file = next(kernel.library.parent.glob("axpy_*.cpp"))
    read = subprocess.run((*command, str(binding_file)), capture_output=True, text=True, check=True).stdout
    assert "python_abi.h" in read and "Python.h" not in read


def test_builds_of_a_process_share_what_they_import(axpy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One builder, which forks: the builds of a thread follow one another in it, and one that dies is replaced."""
    monkeypatch.setattr(builders, "_idle", [])  # tests that build in several threads leave more than one
    for number in range(2):
        (axpy / "axpy.cu").write_text(
            (axpy / "axpy.cu").read_text(encoding="utf-8") + f"// {number}\n", encoding="utf-8"
        )
        assert built(axpy)
    (builder,) = builders._idle
    (axpy / "axpy.cu").write_text((axpy / "axpy.cu").read_text(encoding="utf-8") + "// another\n", encoding="utf-8")
    assert built(axpy) and builders._idle == [builder]
    builder.kill()
    builder.wait()
    (axpy / "axpy.cu").write_text((axpy / "axpy.cu").read_text(encoding="utf-8") + "// one more\n", encoding="utf-8")
    assert built(axpy) and builders._idle != [builder]


def test_a_builder_without_cppimport_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cppimport").mkdir()
    (tmp_path / "cppimport" / "__init__.py").write_text(
        "raise ImportError(\"No module named 'cppimport'\")\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(builders, "_idle", [])
    monkeypatch.setattr(binding, "_child_environment", lambda: os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    with pytest.raises(CompileError, match="does not build") as raised:
        binding.run_cppimport(tmp_path / "binding.cpp")
    assert "No module named 'cppimport'" in raised.value.output
    builders._end(*builders._idle)


def test_argument_names_cannot_clash_with_the_binding(axpy: Path) -> None:
    numpy = pytest.importorskip("numpy")
    data = json.loads((axpy / "axpy.json").read_text(encoding="utf-8"))
    for index, name in enumerate(["status", "arguments", "stream", "thread", "methods", "given"]):
        for argument in data["arguments"]:
            if "shape" in argument:
                argument["shape"] = [name if e == data["arguments"][index]["name"] else e for e in argument["shape"]]
        data["arguments"][index]["name"] = name
    (axpy / "axpy.json").write_text(json.dumps(data), encoding="utf-8")
    one = numpy.ones((2, 3), "float32")
    assert (load_kernel(axpy, device="cpu")(status=one, arguments=one, thread=4.0) == 5).all()


def test_where_a_kernel_may_be_named(axpy: Path) -> None:
    for path in (axpy, axpy / "axpy.json", axpy / "axpy.cu", str(axpy)):
        assert load_kernel(path, device="cpu").manifest.kernel == "axpy"
    shutil.copy(axpy / "axpy.json", axpy / "other.json")
    with pytest.raises(ManifestError, match="it holds axpy.json, other.json"):
        load_kernel(axpy, device="cpu")
    (axpy / "axpy.h").unlink()
    with pytest.raises(ManifestError, match=r"axpy.json names axpy.h, which is not in"):
        load_kernel(axpy / "axpy.json", device="cpu")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"device": "tpu"}, "T2C-R030"),
        ({"device": "cuda", "check": True}, "T2C-R031"),
        ({"check": True, "schedules": ("sorted",)}, "T2C-R030"),
        ({"check": True, "schedules": ()}, "T2C-R030"),
        ({"check": True, "on_finding": "ignore"}, "T2C-R030"),
        ({"check": True, "landing": "soon"}, "T2C-R030"),
        ({"check": True, "preempt": 2.0}, "T2C-R030"),
    ],
)
def test_options_that_are_refused(axpy: Path, options: dict[str, Any], code: str) -> None:
    with pytest.raises(OptionError) as raised:
        load_kernel(axpy, **options)
    assert raised.value.code == code


def test_a_device_that_is_not_there(axpy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "compute_capability", lambda index=0: None)
    assert load_kernel(axpy).device == "cpu"
    with pytest.raises(DeviceError) as raised:
        load_kernel(axpy, device="cuda")
    assert raised.value.code == "T2C-R020"
    monkeypatch.setattr(devices, "compute_capability", lambda index=0: (7, 5))
    with pytest.raises(DeviceError, match=r"axpy is for cuda:sm_80, the GPU here is sm_75") as raised:
        load_kernel(axpy, device="cuda")
    assert raised.value.code == "T2C-R021"


def test_amd_chips_by_the_drivers_numbers(tmp_path: Path) -> None:
    for node, version in enumerate((0, 90402, 90010, 90500)):
        (tmp_path / str(node)).mkdir()
        (tmp_path / str(node) / "properties").write_text(
            f"cpu_cores_count 0\ngfx_target_version {version}\n", encoding="utf-8"
        )
    assert devices.amd_architectures(tmp_path) == ("gfx942", "gfx90a", "gfx950")
    assert devices.amd_architectures(tmp_path / "none") == ()


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        (None, "cuda:sm_80"),
        ((8, 0), "cuda:sm_80"),
        ((8, 9), "cuda:sm_80"),
        ((9, 0), "cuda:sm_90a"),
        ((10, 0), "cuda:sm_80"),
    ],
)
def test_auto_target(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] | None, target: str) -> None:
    monkeypatch.setattr(devices, "compute_capability", lambda index=0: capability)
    assert devices.auto_target() == target
    if capability:
        assert devices.can_run(target.removeprefix("cuda:"), capability)


def test_code_for_one_architecture_only() -> None:
    assert gencode("sm_90a", 90) == ("-gencode", "arch=compute_90a,code=sm_90a")
    assert gencode("sm_80", 90) == ("-gencode", "arch=compute_80,code=sm_90")
    assert gencode("sm_80") == ("-gencode", "arch=compute_80,code=[sm_80,compute_80]")
    assert devices.can_run("sm_80", (9, 0)) and not devices.can_run("sm_90a", (10, 0))


def test_check_builds_are_linked_without_the_sanitizer() -> None:
    build = host_build("k.cu", check=True)
    assert "-fsanitize=thread,bounds" in build.compile and "-Og" in build.compile
    assert not any("sanitize" in word for word in build.link)
    assert not any("sanitize" in word for word in host_build("k.cu", check=False).compile)


IGNORED = "ptxas info : (C7508) Potential Performance Loss: 'setmaxnreg' ignored"


def test_what_ptxas_ignored_is_found() -> None:
    assert ignored_by_ptxas(f"k.cu(1): warning\n  {IGNORED}\nptxas info : 12 registers\n{IGNORED}\n") == (IGNORED,)
    assert ignored_by_ptxas("ptxas info : 12 registers") == ()


def test_what_ptxas_ignored_is_an_error_or_a_warning(axpy: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that prints ptxas's message; the second load finds the build in the cache, with the message."""
    monkeypatch.setenv("TILE2CU_CXX", str(axpy / "g++"))
    (axpy / "g++").write_text(f'#!/bin/sh\necho "{IGNORED}"\nexec g++ "$@"\n', encoding="utf-8")
    (axpy / "g++").chmod(0o755)
    for _ in range(2):
        with pytest.raises(CompileError) as raised:
            load_kernel(axpy, device="cpu")
        assert raised.value.code == "T2C-R012" and IGNORED in str(raised.value)
    with pytest.warns(RuntimeWarning, match="right and slow") as caught:
        load_kernel(axpy, device="cpu", on_ignored="warn")
    assert IGNORED in str(caught[0].message)


def test_depfiles(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("kernel.o: k.cu \\\n /a/b\\ c.h k.h\n", encoding="utf-8")
    assert read_dependencies(tmp_path / "d") == ("k.cu", "/a/b c.h", "k.h")


def test_nvcc_builds_the_binding(axpy: Path, nvcc: str, cache: Path) -> None:
    """No GPU is needed to build and import: the CUDA runtime is linked statically and loads the driver late."""
    manifest = read_manifest(axpy / "axpy.json")
    build = cuda_build("axpy.cu", architecture="sm_80", device=90)
    library = binding.build_library(manifest, axpy, build, device="cuda")
    module = library.load()
    assert module.status_string(1100) == "no CUDA-capable device is detected"
    assert library.seconds > 0 and "-arch" not in build.compile
    assert find_gxx().version in build.identity


def test_headers_are_precompiled_once(axpy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    build = host_build("axpy.cu", check=False)
    flag, header = precompiled_headers(build)
    assert flag == "-include" and Path(header + ".gch").is_file()
    assert precompiled_headers(host_build("other.cu", check=False)) == (flag, header)
    (axpy / "asks.cu").write_text("static_assert(sizeof(tl::half) == 2);\n", encoding="utf-8")
    command = (*build.compile, flag, header, "-Winvalid-pch", "-Werror")
    run_compiler(tuple("asks.cu" if word == "axpy.cu" else word for word in command), axpy, "a text without #include")


def test_a_use_of_precompiled_headers_instantiates_few_templates(axpy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """g++ instantiates anew, each time, what functions of a precompiled header that are no templates call: those of
    rounding modes and of launches were once a quarter of a small kernel's build, special functions a tenth.
    """
    monkeypatch.undo()
    build = host_build("empty.cu", check=True)
    (axpy / "empty.cu").write_text("", encoding="utf-8")
    run_compiler((*build.compile, *precompiled_headers(build), "-fdump-tree-original=dump"), axpy, "an empty text")
    lines = (axpy / "dump").read_text(encoding="utf-8").splitlines()
    instantiated = [line for line in lines if line.startswith(";; Function")]
    assert 0 < len(instantiated) < 60


def test_a_header_of_the_user_may_use_the_whole_standard_library(axpy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    (axpy / "own.h").write_text("#include <cmath>\ninline double own(double x) { return std::riemann_zeta(x); }\n")
    source = axpy / "axpy.cu"
    source.write_text('#include "own.h"\n' + source.read_text(encoding="utf-8"), encoding="utf-8")
    manifest, build = read_manifest(axpy / "axpy.json"), host_build("axpy.cu", check=False)
    command = binding.compile_command(manifest, build, axpy, axpy, device="cpu")
    run_compiler((*command, "-fsyntax-only"), axpy, "the source")
