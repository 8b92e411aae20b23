"""nvcc takes the texts for sm_90a: no warning (a C75xx of ptxas means serialised wgmma), no spill, no local memory."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tile2cu.api import emit_text
from tile2cu.targets import find

ROOT = Path(__file__).resolve().parents[2]
TEXTS = sorted((ROOT / "tests/host/hopper").glob("*.cu"))
SHARED_LOADS = """
import tilelang.language as T


@T.prim_func
def gemm(
    A: T.Tensor((4096, 4096), "float16"), B: T.Tensor((4096, 4096), "float16"), C: T.Tensor((4096, 4096), "float16")
):
    with T.Kernel(16, 32, threads=256, cluster_dims=2) as (bx, by):
        A_shared = T.alloc_shared((128, 64), "float16")
        B_shared = T.alloc_shared((64, 256), "float16")
        C_local = T.alloc_fragment((128, 256), "float32")
        T.clear(C_local)
        for k in T.Pipelined(64, num_stages=3):
            T.copy(A[by * 128, k * 64], A_shared)
            T.copy(B[k * 64, bx * 256], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * 128, bx * 256])
"""


@pytest.mark.sweep(every=5)
@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_nvcc_takes_the_text(nvcc: str, text: Path, tmp_path: Path) -> None:
    compiles(nvcc, text, tmp_path)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("by_hand", [True, False], ids=["by hand", "by a rule"])
def test_nvcc_takes_products_whose_blocks_share_loads(nvcc: str, by_hand: bool, tmp_path: Path) -> None:
    """Of clusters: the example, and a pipelined product."""
    file = ROOT / "examples/gemm_cluster.py" if by_hand else tmp_path / "gemm.py"
    text = file.read_text(encoding="utf-8") if by_hand else SHARED_LOADS
    (emitted,) = emit_text(file, kernel=None, target=find("cuda:sm_90a"), bindings={}, text=text)
    for name, content in emitted.files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (source,) = tmp_path.glob("*.cu")
    assert ("tl::tma_copy(" if by_hand else "tl::tma_load_for(") in source.read_text(encoding="utf-8")
    ptx = compiles(nvcc, source, tmp_path)
    # Each becomes a MEMBAR.ALL.GPU: the user's barrier of the cluster at the start has one, and ours at the end.
    assert (
        len(
            re.findall(
                r"\.release\.cluster|cluster\.arrive\.release", ptx.replace("fence.mbarrier_init.release.cluster;", "")
            )
        )
        == 2 * by_hand
    )


def compiles(nvcc: str, text: Path, tmp_path: Path) -> str:
    """Its PTX. Raises AssertionError where nvcc warns, or ptxas spills or serialises. Launchers: tests/host."""
    command = [
        nvcc, "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-Werror=all-warnings", "-Xptxas=-v,-warn-spills",
        f"-I{ROOT / 'headers'}", "-cubin", "-keep", "-keep-dir", str(tmp_path), "-o", str(tmp_path / "text.cubin"),
        str(text),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr and not re.search(r"\bC75\d\d\b", done.stderr), done.stderr
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    assert frames and set(frames) == {("0", "0", "0")}
    return (tmp_path / f"{text.stem}.ptx").read_text(encoding="utf-8")
