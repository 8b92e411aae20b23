"""Each header of headers/tl compiles alone, warnings are errors: by g++, and by nvcc for sm_80 and sm_90a."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "headers"
TL = HEADERS / "tl"
# Those of the styles cute and ck need CUTLASS and ck_tile: tests/ptx/test_cute.py and tests/amdgcn/test_ck_style.py.
COMMON = sorted([*(set(TL.glob("*.h")) - set(TL.glob("c[uk]*.h"))), *TL.glob("common/**/*.h")])
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
    source.write_text(f"#include <{name(header)}>\n" * 2, encoding="utf-8")
    done = subprocess.run([*command, f"-I{HEADERS}", str(source)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr


@pytest.mark.sweep(every=12)
@pytest.mark.parametrize("header", [h for h in [*COMMON, *HOST] if not needs_cdna(h)], ids=name)
def test_gxx(gxx: str, header: Path, tmp_path: Path) -> None:
    command = [gxx, "-std=c++17", "-O0", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
    compile_alone(command, header, tmp_path, ".cpp")


def nvcc_command(nvcc: str, arch: str, folder: Path) -> list[str]:
    return [
        nvcc, "-std=c++17", f"-gencode=arch=compute_{arch},code=sm_{arch}", "-Werror=all-warnings", "-cubin",
        "-o", str(folder / "alone.cubin"),
    ]  # fmt: skip


@pytest.mark.sweep(every=24)
@pytest.mark.parametrize("header", [h for h in [*COMMON, *CUDA] if not needs_hopper(h) and not needs_cdna(h)], ids=name)
def test_nvcc_for_sm_80(nvcc: str, header: Path, tmp_path: Path) -> None:
    compile_alone(nvcc_command(nvcc, "80", tmp_path), header, tmp_path, ".cu")


@pytest.mark.sweep(every=16)
@pytest.mark.parametrize("header", [TL / "tl.h", *filter(needs_hopper, [*COMMON, *CUDA])], ids=name)
def test_nvcc_for_sm_90a(nvcc: str, header: Path, tmp_path: Path) -> None:
    compile_alone(nvcc_command(nvcc, "90a", tmp_path), header, tmp_path, ".cu")


@pytest.mark.sweep(cases=1)
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
    source.write_text(text, encoding="utf-8")
    command = [*nvcc_command(nvcc, "80", tmp_path), f"-I{HEADERS}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_what_tensor_maps_are_told_is_numbered_as_in_cudas_header(nvcc: str, tmp_path: Path) -> None:
    """headers/tl/cuda/sm90/encode.h declares by itself what it uses of cuda.h, which costs nvcc 0.04 s or more."""
    source = tmp_path / "encode.cu"
    source.write_text(
        """#include <tl/tl.h>
#ifdef CUDA_VERSION
#error cuda.h is read in vain
#endif
#include <cuda.h>
using namespace tl::cuda;
static_assert(sizeof(tl::TensorMap) == sizeof(CUtensorMap) && alignof(tl::TensorMap) % alignof(CUtensorMap) == 0);
static_assert(int(map_uint8) == CU_TENSOR_MAP_DATA_TYPE_UINT8 && int(map_uint16) == CU_TENSOR_MAP_DATA_TYPE_UINT16);
static_assert(int(map_float32) == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 && int(map_uint64) == CU_TENSOR_MAP_DATA_TYPE_UINT64);
static_assert(int(map_interleave_none) == CU_TENSOR_MAP_INTERLEAVE_NONE);
static_assert(int(map_swizzle_none) == CU_TENSOR_MAP_SWIZZLE_NONE && int(map_swizzle_32B) == CU_TENSOR_MAP_SWIZZLE_32B);
static_assert(int(map_swizzle_64B) == CU_TENSOR_MAP_SWIZZLE_64B && int(map_swizzle_128B) == CU_TENSOR_MAP_SWIZZLE_128B);
static_assert(int(map_promotion_none) == CU_TENSOR_MAP_L2_PROMOTION_NONE);
static_assert(int(map_promotion_256B) == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
static_assert(int(map_fill_zeros) == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
template <class... P, class... Q> constexpr bool same(int (*)(P...), CUresult (*)(Q...)) {
  return (true && ... && (sizeof(P) == sizeof(Q) && std::is_pointer<P>::value == std::is_pointer<Q>::value));
}
static_assert(same(EncodeTensorMap(), decltype(&cuTensorMapEncodeTiled)()) && sizeof(CUresult) == sizeof(int));
""",
        encoding="utf-8",
    )
    command = [*nvcc_command(nvcc, "90a", tmp_path), f"-I{HEADERS}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly  # for each change, tests/unit/headers compiles them by g++, and runs them
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
    headers = sorted(TL.glob("common/**/*.h"))
    assert len(headers) > 30
    for header in headers:
        text = header.read_text(encoding="ascii")
        assert not [word for word in words if word in text], name(header)


def test_lines_fit_the_page() -> None:
    for header in TL.rglob("*.h"):
        long = [line for line in header.read_text(encoding="ascii").splitlines() if len(line) > 120]
        assert not long, name(header)
