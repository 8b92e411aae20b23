"""A tensor map that CuTe cannot encode is the status of the launch, in a build without assertions."""

import subprocess
from pathlib import Path

import pytest

from tile2cu_runtime.compilers import cutlass_include
from tile2cu_runtime.paths import headers_dir

# nightly: nvcc takes 8 s for headers of CUTLASS, and the launcher of the style cute changes seldom.
pytestmark = [pytest.mark.needs("cutlass", "nvcc"), pytest.mark.nightly]
LAUNCH_FAILED = 1000  # and the error: of the driver, or that there is none


def test_a_failed_encoding_is_the_status_of_the_launch(nvcc: str, tmp_path: Path) -> None:
    source, program = Path(__file__).with_name("cute_maps.cu"), tmp_path / "maps"
    code = ("-gencode", "arch=compute_90a,code=sm_90a")
    flags = ("-std=c++17", "-O0", "-DNDEBUG", "--expt-relaxed-constexpr", "-isystem", str(cutlass_include()))
    subprocess.run([nvcc, *code, *flags, "-I", str(headers_dir()), str(source), "-o", str(program)], check=True)
    printed = subprocess.run([program], capture_output=True, check=True, text=True).stdout
    empty, failed, launched, without_blocks = map(int, printed.split())
    assert failed > LAUNCH_FAILED
    assert (empty, launched, without_blocks) == (0, failed, 0)
