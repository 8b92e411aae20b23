"""tl::print at the places that a source's head names, in the emitted file: it compiles, and prints the tiles."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.golden.cases import ROOT
from tile2cu.cli import main

PRINTED = re.compile(r"^(?:\S+: )?(\w+)\((\d+), (\d+)\) = (\S+) in block", re.M)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("source", "wait", "tile", "stage", "shapes"),
    [
        ("cuda/sm_80/gemm_relu", "tl::sync_threads();  ", "A_shared", "ko", {"A_shared": (128, 32)}),
        ("cuda/sm_90a/gemm_relu", "pipeline.consumer_wait(ko);", "A_shared", "ko", {"A_shared": (128, 64)}),
    ],
)
def test_tiles_are_printed_where_the_head_states(
    source: str,
    wait: str,
    tile: str,
    stage: str,
    shapes: dict[str, tuple[int, int]],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for path in (ROOT / "emitted" / source).parent.glob("gemm_relu.*"):
        shutil.copy(path, tmp_path)
    file = tmp_path / "gemm_relu.cu"
    text = file.read_text(encoding="utf-8")
    head = re.sub(r"\n// {6,}(?=\S)", " ", text.partition("#include")[0])
    place = re.search(r"C_local +after gemm_relu\.py:24; .*; in (gemm_relu\.py:30), right before it is stored", head)
    assert place and "A_shared, B_shared  in iteration ko, after " in head
    kernel = text.replace(f"  // {place[1]}", f'  tl::print("C_local", C_local);\n  // {place[1]}')
    at = kernel.index("\n", kernel.index(wait, kernel.index(f"for (int {stage} = 0; {stage} < num_iterations", 0)))
    look = f'\n    tl::print("{tile}", {tile}[{stage} % num_stages]);'
    if "consumer_wait" in wait:
        at = kernel.index("\n", kernel.index(wait))
    file.write_text(kernel[:at] + look + kernel[at:], encoding="utf-8")
    assert main(["run", str(file), "--size", "M=8", "--size", "N=8", "--size", "K=8"]) == 0
    found = PRINTED.findall(capfd.readouterr().out)
    rows, columns = shapes[tile]
    assert {(int(i), int(j)) for name, i, j, _ in found if name == tile} == {
        (i, j) for i in range(rows) for j in range(columns)
    }
    stored = [(int(i), int(j), float(x)) for name, i, j, x in found if name == "C_local"]
    assert len(stored) == len({each[:2] for each in stored}) and (0, 0) in {each[:2] for each in stored}
    assert all(x == 0 for i, j, x in stored if i >= 8 or j >= 8)
    assert any(x > 0 for *_, x in stored)


def test_each_warpgroup_prints_the_tiles_of_its_own_iterations(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = ROOT / "tests/host/dependence/kernels/ping_pong_by_iteration.py"
    assert main([str(source), "--target", "cuda:sm_90a", "-o", str(tmp_path)]) == 0
    file = tmp_path / "ping_pong_by_iteration.cu"
    text = file.read_text(encoding="utf-8")
    assert "//   KV_shared  after the wait for the MMAs of S, by the warpgroup whose iteration it is\n" in text
    wait = re.compile(r"tl::gemm_wait<0>\(S\);")
    assert len(wait.findall(text)) == 2
    of_iteration = iter(("k_iter", "(k_iter + 1)"))  # warpgroup 1 is one iteration ahead
    look = 'tl::print_own("S", S); tl::print_own("KV_shared", KV_shared[{} % num_stages]);'
    file.write_text(wait.sub(lambda found: f"{found[0]} {look.format(next(of_iteration))}", text), encoding="utf-8")
    assert main(["run", str(file), "--size", "N=192", "--size", "first=0"]) == 0
    found = PRINTED.findall(capfd.readouterr().out)
    for tile, columns in (("S", 64), ("KV_shared", 128)):
        printed = Counter((int(i), int(j)) for name, i, j, _ in found if name == tile)
        assert printed == {(i, j): 3 for i in range(64) for j in range(columns)}, "each element in 3 iterations"
