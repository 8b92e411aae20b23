"""Each header of headers/tl compiles alone, warnings are errors: by g++, and by nvcc for sm_80 and sm_90a."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "headers"
TL = HEADERS / "tl"
COMMON = sorted([*TL.glob("*.h"), *TL.glob("common/**/*.h")])
CUDA = sorted(set(TL.glob("cuda/**/*.h")) - {TL / "cuda/nvrtc.h"})  # that one: test_nvrtc.py
HOST = sorted(TL.glob("host/**/*.h"))
CDNA = "cdna"  # primitives of another machine, which stand on a wider warp


def name(header: Path) -> str:
    return str(header.relative_to(HEADERS))


def needs_hopper(header: Path) -> bool:
    return "sm90" in header.relative_to(TL).as_posix()


def needs_cdna(header: Path) -> bool:
    return CDNA in header.parts or header.stem == CDNA


def compile_alone(command: list[str], header: Path, folder: Path, suffix: str) -> None:
    """Compiles a file that includes the header, twice: once for what it needs, once for its include guard."""
    source = folder / f"alone{suffix}"
    source.write_text(f"#include <{name(header)}>\n" * 2)
    done = subprocess.run([*command, f"-I{HEADERS}", str(source)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr


@pytest.mark.parametrize("header", [h for h in [*COMMON, *HOST] if not needs_cdna(h)], ids=name)
def test_gxx(gxx: str, header: Path, tmp_path: Path) -> None:
    command = [gxx, "-std=c++17", "-O0", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
    compile_alone(command, header, tmp_path, ".cpp")


def nvcc_command(nvcc: str, arch: str, folder: Path) -> list[str]:
    return [
        nvcc, "-std=c++17", f"-gencode=arch=compute_{arch},code=sm_{arch}", "-Werror=all-warnings", "-cubin",
        "-o", str(folder / "alone.cubin"),
    ]  # fmt: skip


@pytest.mark.parametrize("header", [h for h in [*COMMON, *CUDA] if not needs_hopper(h) and not needs_cdna(h)], ids=name)
def test_nvcc_for_sm_80(nvcc: str, header: Path, tmp_path: Path) -> None:
    compile_alone(nvcc_command(nvcc, "80", tmp_path), header, tmp_path, ".cu")


@pytest.mark.parametrize("header", [TL / "tl.h", *filter(needs_hopper, [*COMMON, *CUDA])], ids=name)
def test_nvcc_for_sm_90a(nvcc: str, header: Path, tmp_path: Path) -> None:
    compile_alone(nvcc_command(nvcc, "90a", tmp_path), header, tmp_path, ".cu")


@pytest.mark.parametrize(
    "text",
    [
        "#include <tl/tl.h>\n#ifdef __CUDA_FP16_H__\n#error read in vain: it costs nvcc 0.25 s\n#endif\n",
        "#define TL_CUDA_HALF\n#include <tl/tl.h>\nstatic_assert(std::is_same<tl::half, __half>::value);\n",
    ],
    ids=["its own", "CUDA's"],
)
def test_half_is_cudas_where_it_is_asked_for(nvcc: str, text: str, tmp_path: Path) -> None:
    source = tmp_path / "half.cu"
    source.write_text(text)
    command = [*nvcc_command(nvcc, "80", tmp_path), f"-I{HEADERS}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kernels", sorted((ROOT / "tests/unit/headers/kernels").glob("*.cu")), ids=lambda p: p.stem)
def test_nvcc_takes_the_kernels_that_test_the_headers(nvcc: str, kernels: Path, tmp_path: Path) -> None:
    """All layouts, types, reductions and copies, without a warning or a spill."""
    command = [*nvcc_command(nvcc, "80", tmp_path), "-Xptxas=-v", "-Xcompiler=-Wall,-Wextra", f"-I{HEADERS}"]
    done = subprocess.run([*command, str(kernels)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    spills = re.findall(r"(\d+) bytes spill stores", done.stderr)
    assert spills and set(spills) == {"0"}


def test_a_launchers_header_is_plain_c(gxx: str, tmp_path: Path) -> None:
    """The header of an emitted kernel includes nothing but status.h: a C program may use it."""
    compile_alone(
        [gxx, "-x", "c", "-std=c99", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-pedantic"],
        TL / "status.h",
        tmp_path,
        ".c",
    )


def test_common_names_no_machine() -> None:
    """What is written once asks no compiler which machine it is for, and contains no assembly."""
    words = ("__CUDACC__", "__CUDA_ARCH__", "__HIP", "asm", "threadIdx", "__shfl", "TL_HOST")
    for header in TL.glob("common/**/*.h"):
        text = header.read_text(encoding="ascii")
        assert not [word for word in words if word in text], name(header)
        assert all(len(line) <= 120 for line in text.splitlines()), name(header)
