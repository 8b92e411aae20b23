"""An AMD compiler accepts what is ours: the hip primitives, and an emitted text that needs no matrix cores.

No ROCm: Debian's clang-19 makes a gfx942 code object from headers of our own. Whether the text is right there is not
asked here; that it selects instructions, fits the registers and uses no library is.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.amdgcn.code import assert_no_spills

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "headers"
# Those with matrix cores: tests/amdgcn/test_stated_instructions.py
TEXTS = [
    path
    for path in sorted((ROOT / "emitted/hip").rglob("*.hip"))
    if "tl::gemm(" not in path.read_text(encoding="utf-8")
]
FLAGS = [
    "-x", "hip", "-std=c++17", "-O3", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}",
    "--offload-arch=gfx942", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib",
    "-DTL_HIP_STANDALONE",
]  # fmt: skip


def code_object(clang: str, source: Path, out: Path) -> None:
    """Compiles to `out`."""
    done = subprocess.run([clang, *FLAGS, str(source), "-o", str(out)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def device_functions(side: str) -> set[str]:
    """Names of the functions that a side's headers define for emitted text and for common/, by macros, too.

    Not what stands for HIP's own headers and device library.
    """
    toolkit = ("standalone.h", "library.h")
    files = [path for path in sorted((HEADERS / "tl" / side).glob("*.h")) if path.name not in toolkit]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    text = re.sub(r"^namespace (hip|cuda) {$.*?^}  // namespace \1$", "", text, flags=re.MULTILINE | re.DOTALL)
    macros = "|".join(re.findall(r"#define (TL_\w+)\(name\b", text))
    defined = re.findall(rf"^(?:{macros})\((\w+)", text, re.MULTILINE)
    return {*defined, *re.findall(r"^(?:template <.*> )?TL_DEVICE [\w:]+[*&]? (\w+)\(", text, re.MULTILINE)}


def test_primitives_become_a_code_object(clang_hip: str, tmp_path: Path) -> None:
    code_object(clang_hip, ROOT / "tests/compile/amd/primitives.hip", tmp_path / "primitives.hsaco")
    assert_no_spills(tmp_path / "primitives.hsaco", products=False)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: str(text.relative_to(ROOT / "emitted/hip")))
def test_emitted_text_becomes_a_code_object(text: Path, clang_hip: str, tmp_path: Path) -> None:
    code = tmp_path / f"{text.stem}.hsaco"
    code_object(clang_hip, text, code)
    assert_no_spills(code, products=False)


def test_text_with_mma_says_what_to_do(clang_hip: str, tmp_path: Path) -> None:
    command = [clang_hip, *FLAGS, str(ROOT / "emitted/cuda/sm_80/gemm_relu.cu"), "-o", str(tmp_path / "gemm.hsaco")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert "CDNA has no ldmatrix" in done.stderr or "emit the kernel for a hip target" in done.stderr


# Primitives that one maker's headers have and the other's have not, and why.
ONE_SIDED = {
    "shared_address": "how PTX addresses shared memory; only headers/tl/cuda uses it",
    "sync_grid": "a cooperative launch's; on AMD what follows T.sync_grid is a kernel of its own, or it is refused",
    "griddepcontrol_wait": "griddepcontrol of sm_90; AMD's kernels start one after the other",
    "griddepcontrol_launch_dependents": "the same",
    "load_inside": "AMD's buffers check bounds; only headers/tl/common/cdna uses them",
    "load_to_shared": "gfx950's loads past the registers; on NVIDIA it is cp_async",
    "wait_vector_memory": "AMD counts loads; NVIDIA's cp_async_wait counts groups",
    "load_bits_to": "bytes of shared memory into an MFMA's operand; mma.sync's come by ldmatrix",
    "load_transposed": "gfx950's transposing reads; NVIDIA's are the ldmatrix family",
    "set_wave_priority": "of the waves of a SIMD; NVIDIA's warps have none",
    "mfma": "AMD's matrix cores; NVIDIA's are the mma and wgmma families",
}
# Declared for AMD, and refused where they are used: lanes of CDNA read the operands of its matrix cores by themselves.
REFUSED = ("ldmatrix_x2", "ldmatrix_x2_trans", "ldmatrix_x4", "ldmatrix_x4_trans")


def test_each_primitive_is_on_both_sides_or_has_a_reason() -> None:
    """What is written once, in headers/tl/common, is then on both; sm90/ and cdna/ are each maker's own."""
    assert device_functions("cuda") ^ device_functions("hip") == ONE_SIDED.keys()
    refused = (HEADERS / "tl/hip/warp.h").read_text(encoding="utf-8")
    assert all(f"TL_HIP_LACKS_LDMATRIX({name})" in refused for name in REFUSED)
