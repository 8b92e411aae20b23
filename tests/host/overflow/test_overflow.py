"""No int of an emitted source overflows at run-time sizes near 2**31, or at products of sizes beyond it."""

import re
from pathlib import Path

import pytest

import tile2cu
from tests.host.overflow.audit import LIMITS, audit, library_of, run, skipping
from tile2cu_runtime.spec import read_manifest

ROOT = Path(__file__).resolve().parents[3]
EMITTED = ROOT / "emitted"
SOURCES = sorted(
    path.relative_to(EMITTED).as_posix()
    for folder in ("cuda", "hip")
    for path in (EMITTED / folder).rglob("*.*")
    if path.suffix in (".cu", ".hip")
)
# Of the style tl that can run: boxes of TMA, a grid of its own, and a table of lengths.
EACH_TIME = ("cuda/sm_90a/gemm_splitk.cu", "cuda/sm_80/vector_add.cu", "hip/gfx942/row_softmax.hip")


def assert_nothing_overflows(source: Path) -> None:
    outcomes = audit(source, most=LIMITS.get(source.stem))
    assert not [(outcome.sizes, outcome.faults) for outcome in outcomes if outcome.faults]
    sizes = read_manifest(source.with_suffix(".json")).sizes
    ended = [outcome for outcome in outcomes if outcome.status == 0]
    assert len(ended) > 1 or not sizes, "the launcher accepts extreme sizes, and blocks run to their end"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EACH_TIME else pytest.mark.nightly) for name in SOURCES]
)
def test_nothing_overflows(name: str) -> None:
    assert_nothing_overflows(EMITTED / name)


@pytest.mark.nightly
@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_nothing_overflows_on_amd(path: Path, tmp_path: Path) -> None:
    for kernel, emitted in tile2cu.emit(path, target="hip:gfx942").items():
        for name, text in emitted.files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        assert_nothing_overflows(tmp_path / f"{kernel}.hip")


LAST_TILE = """
import tilelang
import tilelang.language as T

N = T.dynamic("N")


@tilelang.jit
def last_tile():
    @T.prim_func
    def body(X: T.Tensor((N,), "int8"), Y: T.Tensor((N,), "int8")):
        with T.Kernel(T.ceildiv(N, 96 * 32), threads=32) as bx:
            tile = T.alloc_fragment((96 * 32,), "int8")
            T.copy(X[bx * (96 * 32)], tile)
            T.copy(tile, Y[bx * (96 * 32)])
    return body
"""


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_a_tile_that_reaches_behind_the_largest_int(target: str, tmp_path: Path) -> None:
    """3072 does not divide 2**31."""
    path = tmp_path / "last_tile.py"
    path.write_text(LAST_TILE, encoding="utf-8")
    ((_, emitted),) = tile2cu.emit(path, target=target).items()
    for name, text in emitted.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (source,) = (tmp_path / name for name in emitted.files if name.endswith((".cu", ".hip")))
    outcome = run(library_of(source), read_manifest(source.with_suffix(".json")), {"N": 2**31 - 1})
    assert (outcome.status, outcome.faults) == (0, ())


def planted(folder: Path, old: str, new: str) -> Path:
    """vector_add with a fault."""
    for name in ("vector_add.cu", "vector_add.h", "vector_add.json"):
        text = (EMITTED / "cuda/sm_80" / name).read_text(encoding="utf-8")
        assert not name.endswith(".cu") or text.count(old) > 0
        (folder / name).write_text(text.replace(old, new) if name.endswith(".cu") else text, encoding="utf-8")
    return folder / "vector_add.cu"


def test_an_int_that_overflows_is_found_with_its_line(tmp_path: Path) -> None:
    old = "bx * block_N"
    source = planted(tmp_path, old, f"3 * {old}")
    library, manifest = library_of(source), read_manifest(source.with_suffix(".json"))
    assert not run(library, manifest, {"N": 2**29}).faults
    outcome = run(library, manifest, {"N": 2**31 - 1})
    line = next(n for n, text in enumerate(skipping(source.read_text("utf-8")).split("\n"), 1) if "3 * bx" in text)
    assert any(re.search(rf"mul of -?\d+ and -?\d+ at kernel.cu:{line}:", fault) for fault in outcome.faults)


def test_an_access_behind_a_tensor_ends_the_run(tmp_path: Path) -> None:
    source = planted(tmp_path, "tl::predicated(N)", "(N)")
    library, manifest = library_of(source), read_manifest(source.with_suffix(".json"))
    assert not run(library, manifest, {"N": 2**20}).faults
    assert run(library, manifest, {"N": 2**31 - 100}).faults


def test_a_loop_runs_its_first_and_its_last_iterations() -> None:
    text = "constexpr int num_stages = 3;\n#include <tl/tl.h>\nfor (int k = 0; k < trips; ++k, ++stage) {\n}\n"
    changed = skipping(text)
    assert "for (int k = 0; k < trips; k = next_that_runs(k, 1, trips), ++stage) {" in changed
    assert "turn = 6;" in changed, "both phases of the barriers of all stages"
