"""The requirements of tests, and the handling of missing ones.

A test folder is named for its requirement: `host` and `engine` need g++, `gpu` needs a CUDA GPU; the tests in `compile`
name their compiler by a fixture (`nvcc`, `gxx`, `clang_hip`). Any test can add requirements by
`@pytest.mark.needs("torch")`. A missing requirement is a skip with an installation hint. TILE2CU_REQUIRE, a
comma-separated list such as `g++,nvcc`, turns that skip into a failure: CI lists there what it has installed.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib.util
import itertools
import os
import shutil
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from msgspec.structs import replace

import tests.one_thread  # noqa: F401
from tests.quick_binding import quick_library
from tile2cu import emitter, loading
from tile2cu.tool import this_tool
from tile2cu_runtime import binding
from tile2cu_runtime.compilers import Compiler, composable_kernel_include, find_gxx, find_nvcc
from tile2cu_runtime.errors import CompileError
from tile2cu_runtime.hip import find_device_library, find_hip_library

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Need:
    """A thing that tests need: how it is found (a path, or None) and how one gets it."""

    name: str
    find: Callable[[], str | None]
    install: str


def find_compiler(find: Callable[[], Compiler]) -> str | None:
    """The compiler that the runtime would take."""
    try:
        return find().path
    except CompileError:
        return None


def find_clang_hip() -> str | None:
    """clang-19 with the linker that produces code objects, and the reader of their notes."""
    tools = [shutil.which(tool) for tool in ("clang-19", "ld.lld-19", "llvm-readelf-19")]
    return tools[0] if all(tools) else None


def find_ziglang() -> str | None:
    """The wheel whose clang knows gfx950."""
    spec = importlib.util.find_spec("ziglang")
    return spec.origin if spec else None


def find_rocm() -> str | None:
    """HIP's runtime with its headers, and the bundler that clang calls for a library with host and device code."""
    try:
        library = find_hip_library()
    except CompileError:
        return None
    headers = any((folder / "include" / "hip" / "hip_runtime.h").is_file() for folder in library.parents)
    bundler = shutil.which("clang-offload-bundler-19")
    return str(library) if headers and bundler else None


def find_cutlass() -> str | None:
    """CUTLASS's package: its headers are the independent statement of layouts that some tests compare with."""
    spec = importlib.util.find_spec("cutlass_library")
    return spec.origin if spec else None


def find_ck() -> str | None:
    """Composable Kernel's headers, and HIP's headers and device library, with which clang compiles them."""
    try:
        folder = composable_kernel_include()
        find_device_library("gfx942")
    except CompileError:
        return None
    return str(folder)


def find_torch() -> str | None:
    spec = importlib.util.find_spec("torch")
    return spec.origin if spec else None


def find_ray() -> str | None:
    spec = importlib.util.find_spec("ray")
    return spec.origin if spec else None


def find_browser() -> str | None:
    """A Chromium that runs without a window."""
    return next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)


def find_webdriver() -> str | None:
    """What drives that Chromium, if selenium is there, which speaks to it."""
    return shutil.which("chromedriver") if importlib.util.find_spec("selenium") else None


def find_nvrtc() -> str | None:
    """The versions of NVRTC that tests/compile/nvrtc.py finds."""
    folder = ROOT / ".nvrtc"
    return str(folder) if any(folder.glob("*/nvidia/*/lib/libnvrtc.so.*")) else None


def find_nvdisasm() -> str | None:
    """nvdisasm of PATH, or of the PyPI packages."""
    packages = (Path(folder) / "nvidia/cu13/bin/nvdisasm" for folder in sys.path)
    return shutil.which("nvdisasm") or next((str(path) for path in packages if path.is_file()), None)


def has_driver() -> bool:
    """Whether there is a CUDA driver: without one, no worker imports torch to hear that there is no GPU."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@functools.cache
def find_gpu() -> str | None:
    if find_torch() is None or not has_driver():
        return None
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


NEEDS = {
    need.name: need
    for need in (
        Need(name="g++", find=lambda: find_compiler(find_gxx), install="apt-get install g++"),
        Need(
            name="nvcc",
            find=lambda: find_compiler(find_nvcc),
            install="pip install 'tile2cu[cuda]', or a CUDA 13 toolkit on PATH",
        ),
        Need(
            name="nvdisasm", find=find_nvdisasm, install="pip install 'nvidia-cuda-nvdisasm==13.*', or a CUDA toolkit"
        ),
        Need(name="amd", find=find_clang_hip, install="apt-get install clang-19 lld-19 llvm-19"),
        Need(name="ziglang", find=find_ziglang, install="pip install ziglang==0.17.0"),
        Need(name="rocm", find=find_rocm, install="apt-get install libamdhip64-dev clang-tools-19, or ROCm"),
        Need(
            name="nvrtc",
            find=find_nvrtc,
            install="pip install --target .nvrtc/12.4 'cuda-toolkit[nvrtc,cudart,cccl]==12.4.1', and others like it",
        ),
        Need(name="cmake", find=lambda: shutil.which("cmake"), install="apt-get install cmake make"),
        Need(name="cutlass", find=find_cutlass, install="pip install --no-deps nvidia-cutlass==4.2.0.0"),
        Need(
            name="ck",
            find=find_ck,
            install="apt-get install libamdhip64-dev rocm-device-libs, and python tools/fetch_ck.py",
        ),
        Need(name="torch", find=find_torch, install="pip install torch"),
        Need(name="ray", find=find_ray, install="pip install ray"),
        Need(name="browser", find=find_browser, install="apt-get install chromium"),
        Need(name="webdriver", find=find_webdriver, install="apt-get install chromium-driver; pip install selenium"),
        Need(name="gpu", find=find_gpu, install="an NVIDIA GPU, and pip install torch"),
    )
}
FOLDER_NEEDS = {
    "host": "g++",
    "cpu": "g++",
    "differential": "g++",
    "amdgcn": "amd",
    "ptx": "nvcc",
    "gpu": "gpu",
}


def required() -> frozenset[str]:
    """The needs whose absence is a failure, from TILE2CU_REQUIRE."""
    names = frozenset(filter(None, os.environ.get("TILE2CU_REQUIRE", "").split(",")))
    if unknown := names - NEEDS.keys():
        raise pytest.UsageError(f"TILE2CU_REQUIRE names {sorted(unknown)}; there are {sorted(NEEDS)}")
    return names


def demand(name: str) -> str:
    """The path (or name) of the need; without it the running test is skipped, or fails if TILE2CU_REQUIRE has it."""
    need = NEEDS[name]
    if found := need.find():
        return found
    reason = f"needs {name}, which is not here ({need.install})"
    if name in required():
        pytest.fail(f"{reason}, and TILE2CU_REQUIRE lists it", pytrace=False)
    pytest.skip(reason)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--programs", type=int, default=8, help="how many random programs tests/differential runs")
    parser.addoption("--fuzz", type=int, default=24, help="how many damaged kernels tests/fuzz transpiles")
    parser.addoption("--programs-seed", type=int, default=0, help="which random programs")
    parser.addoption("--mutants", type=int, default=16, help="of how many mutants of rules' examples one is validated")
    parser.addoption("--rule-orders", type=int, default=1, help="how many orders of the rules tests/golden shuffles")
    parser.addoption("--nightly", action="store_true", help="run the tests whose builds take too long for each change")
    parser.addoption("--update-emitted", action="store_true", help="rewrite emitted/ with what tile2cu emits now")
    parser.addoption("--update-words", action="store_true", help="lower the counts of private words in tests/golden")


# No test measures time: a machine that is busy with something else is no failure.
settings.register_profile("tile2cu", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tile2cu")


def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(100_000, 20, 20)
    config.addinivalue_line("markers", "needs(name, ...): skip without these: " + ", ".join(sorted(NEEDS)))
    config.addinivalue_line("markers", "binding: build kernels for the CPU engine with the runtime's Python binding")
    config.addinivalue_line("markers", "whole_heads: emit heads with what other values of tile parameters give")
    config.addinivalue_line("markers", "nightly: skip without --nightly; .ci/nightly runs them")
    config.addinivalue_line(
        "markers",
        "sweep(name, ..., pairs=False, every=None, cases=None): without --nightly a sample of the cases: with each "
        "value of these parameters (of all), or each pair; or one in `every`; or so many `cases`, from another one on "
        "for each test",
    )
    required()


# The tests marked `sweep` of this run: all cases of each, and those that run.
SWEEPS = pytest.StashKey[dict[str, tuple[list[pytest.Function], list[pytest.Function]]]]()


def pytest_report_header() -> list[str]:
    missing = [need.name for need in NEEDS.values() if need.find() is None]
    return [f"python: {sys.executable}", f"missing needs: {', '.join(missing) or 'none'}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --nightly, takes a sample of the cases of each test marked `sweep`."""
    sweeps: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sweep"):
            sweeps.setdefault(item.nodeid.split("[")[0], []).append(item)
    nightly = config.getoption("--nightly")
    chosen = {name: cases if nightly else sample(cases) for name, cases in sweeps.items()}
    config.stash[SWEEPS] = {name: (cases, chosen[name]) for name, cases in sweeps.items()}
    left = {item for cases in sweeps.values() for item in cases}.difference(*chosen.values())
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=list(left))


def pytest_collection_finish() -> None:
    """Thousands of collected tests live as long as the run, so that the garbage collector seldom runs.

    They are not frozen: tile2cu asks at each emission how many objects are, and Python counts them one by one, which
    took a fifth of it.
    """
    gc.collect()


def sample(cases: list[pytest.Function]) -> list[pytest.Function]:
    """Few of a test's cases: each `every`-th, or such that each value of the parameters that the mark `sweep` names, or
    of all, is in one of them; with `pairs`, each two values of two parameters. With `cases`, so many of them, the first
    of which the test's name gives: tests of the same targets take different ones.

    Always the case with most that no case before it has; of such the one whose values are the rarest so far, so that
    all parameters vary.
    """
    mark = cases[0].get_closest_marker("sweep")
    assert mark is not None
    if every := mark.kwargs.get("every"):
        return cases[::every]
    count = mark.kwargs.get("cases")
    first = zlib.crc32(cases[0].originalname.encode()) % len(cases) if count else 0
    left = cases[first:] + cases[:first]
    values = {
        case: [
            (name, repr(value)) for name, value in case.callspec.params.items() if not mark.args or name in mark.args
        ]
        for case in cases
    }
    size = 2 if mark.kwargs.get("pairs") else 1
    groups = {case: set(itertools.combinations(found, size)) for case, found in values.items()}
    missing, chosen = set().union(*groups.values()), []
    used: Counter[tuple[str, str]] = Counter()
    while left and (len(chosen) < count if count else missing):
        best = max(left, key=lambda case: (len(groups[case] & missing), -sum(used[value] for value in values[case])))
        left.remove(best)
        chosen.append(best)
        used.update(values[best])
        missing -= groups[best]
    return chosen


def folder_need(path: Path) -> str | None:
    """The requirement of the test's folder."""
    tests = ROOT / "tests"
    return FOLDER_NEEDS.get(path.relative_to(tests).parts[0]) if path.is_relative_to(tests) else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("nightly") and not item.config.getoption("--nightly"):
        pytest.skip("nightly: --nightly runs it")
    names = [name for mark in item.iter_markers("needs") for name in mark.args]
    for name in filter(None, [folder_need(item.path), *names]):
        demand(name)


# The folders whose tests look at what kernels compute, not at how they are built.
WITHOUT_BINDING = frozenset({"amdgcn", "conformance", "cpu", "host", "ptx"})
BUILD_LIBRARY = binding.build_library


@pytest.fixture(autouse=True, scope="module")
def quick_bindings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kernels for the CPU engine are called by ctypes, but in modules and tests marked `binding`."""
    folder = request.path.relative_to(ROOT / "tests").parts[0]
    with pytest.MonkeyPatch.context() as patch:
        if folder in WITHOUT_BINDING and not request.node.get_closest_marker("binding"):
            patch.setattr(binding, "build_library", quick_library)
        yield


@pytest.fixture(autouse=True)
def whole_bindings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Single tests may be marked `binding`, too."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("binding"):
            patch.setattr(binding, "build_library", BUILD_LIBRARY)
        yield


# The folders whose tests hold heads against what they state, or emit damaged or random kernels.
WHOLE_HEADS = frozenset({"conformance", "differential", "errors", "fuzz", "golden"})


@pytest.fixture(autouse=True, scope="module")
def quick_heads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Heads lack the lines about other values of tile parameters, but in modules marked `whole_heads`: for each value
    the rules decide the kernel anew, which is most of an example's emission.
    """
    folder = request.path.relative_to(ROOT / "tests").parts[0]
    marked = request.node.get_closest_marker("whole_heads")
    with pytest.MonkeyPatch.context() as patch:
        if folder not in WHOLE_HEADS and not marked and not request.config.getoption("--nightly"):
            tool = this_tool()
            patch.setattr(emitter, "in_words", lambda launches, registers, printer, write: ())
            # The cache of emitted kernels is the user's: such kernels have keys of their own there.
            patch.setattr(loading, "this_tool", lambda: replace(tool, sha256=f"{tool.sha256} with quick heads"))
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def headers(root: Path) -> Path:
    """The folder to give a compiler with -I."""
    return root / "headers"


@pytest.fixture
def gxx() -> str:
    """Path of g++."""
    return demand("g++")


@pytest.fixture
def nvcc(monkeypatch: pytest.MonkeyPatch) -> str:
    """Path of nvcc. The one from PyPI looks for its libraries in lib64, and they are in lib."""
    path = demand("nvcc")
    libraries = Path(path).resolve().parents[1] / "lib"
    if (libraries / "libcudart_static.a").is_file():
        monkeypatch.setenv("LIBRARY_PATH", str(libraries))
    return path


@pytest.fixture
def nvdisasm() -> str:
    """Path of nvdisasm."""
    return demand("nvdisasm")


@pytest.fixture
def clang_hip() -> str:
    """Path of a clang that compiles HIP for gfx942."""
    return demand("amd")


@pytest.fixture(scope="session")
def ziglang() -> str:
    """The ziglang wheel, which builds for gfx950."""
    return demand("ziglang")


@pytest.fixture
def update_emitted(request: pytest.FixtureRequest) -> bool:
    """True when the golden files are to be rewritten, not compared."""
    return bool(request.config.getoption("--update-emitted"))
