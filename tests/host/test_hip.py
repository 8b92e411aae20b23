"""The HIP text of the examples on the CPU engine, in waves of 64, against float64, ragged sizes included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.amdgcn.chips import ALL_CHIPS, CHIPS
from tests.host.example_calls import EXAMPLES, RAGGED, Example, attention, gemm_relu
from tests.host.more_calls import MORE, Case
from tests.host.products import MFMA_PRODUCTS, Product
from tile2cu_runtime import Kernel


def load(name: str, kernel: str | None = None, target: str = "hip:gfx942", **bindings: object) -> Kernel:
    options = {"schedules": ("round-robin", "shuffle")}
    return tile2cu.load(EXAMPLES / name, kernel, target=target, device="cpu", check=True, options=options, **bindings)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("example", RAGGED, ids=str)
@pytest.mark.parametrize("chip", CHIPS)
def test_example(chip: str, example: Example) -> None:
    kernel = load(example.file, example.kernel, f"hip:{chip}", **example.bindings)
    for call in example.calls:
        call.check(kernel)
        assert kernel.report is not None and not kernel.report.findings


# Without a choice of chips a few: tests/amdgcn runs all of them as code.
FEW = ("dequant_gemv", "linear_attention")


@pytest.mark.nightly
@pytest.mark.parametrize("case", [case for case in MORE if ALL_CHIPS or str(case) in FEW], ids=str)
@pytest.mark.parametrize("chip", CHIPS)
def test_more_examples(chip: str, case: Case) -> None:
    """With AMD's bank model counting beside the checks."""
    kernel = case.load(f"hip:{chip}", "cpu", statistics=True)
    case.check(kernel)
    assert kernel.report is not None and not kernel.report.findings


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize(("target", "product", "instruction"), MFMA_PRODUCTS, ids=str)
def test_product(target: str, product: Product, instruction: str, tmp_path: Path) -> None:
    """The same as on the simulator (tests/amdgcn/test_products.py)."""
    kernel = product.check(tmp_path, f"hip:{target}", "cpu")
    assert "tl::MfmaAccumulator<" in kernel.source
    chosen = {fact.value.partition(" ")[0] for fact in kernel.manifest.facts if fact.what == "instruction"}
    assert chosen == {instruction}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_products_read_shared_memory_without_conflicts(chip: str) -> None:
    """As the simulator counts them (tests/amdgcn/test_products.py): rows of K and rows across K, 16 bytes a lane."""
    kernel = tile2cu.load(
        EXAMPLES / "attention.py",
        target=f"hip:{chip}",
        device="cpu",
        check=True,
        options={"statistics": True},
        dim=128,
        is_causal=False,
        threads=256,
    )
    attention(1, 1, 64, 128, causal=False).check(kernel)
    assert kernel.report is not None
    reads = [each for each in kernel.report.shared if "tl::gemm" in each.place.text and each.access == "read"]
    assert len(reads) >= 2 and {read.worst_ways for read in reads} == {1}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("tb", [False, True])
def test_b_in_registers_goes_through_shared_memory(tb: bool, tmp_path: Path) -> None:
    kernel = Product(b_in_registers=True, tb=tb, dtype="bfloat16").check(tmp_path, "hip:gfx942", "cpu")
    assert "a GEMM reads B from shared memory on AMD: B_local is staged there" in " ".join(kernel.source.split())


@pytest.mark.nightly
def test_product_of_8_bit_floats(tmp_path: Path) -> None:
    own = Product(dtype="float8_e4m3", tb=True).check(tmp_path, "hip:gfx950", "cpu")
    assert "as float16" not in own.source
    other = Product(dtype="float8_e4m3fnuz", tb=True).check(tmp_path, "hip:gfx950", "cpu")
    assert "gfx950 multiplies float8_e4m3fnuz as float16, which holds its values exactly" in other.source


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("stages", [2, 3])
def test_pipelined_gemm(stages: int) -> None:
    kernel = load("gemm_relu.py", block_M=64, block_N=64, num_stages=stages)
    assert ("load(ko + 2);" if stages == 3 else "load(ko + 1);") in kernel.source and "Register-staged" in kernel.source
    for sizes in ((64, 64, 0), (100, 72, 40), (5, 3, 7), (64, 64, 200)):
        gemm_relu(*sizes).check(kernel)


WAVE = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def wave(M, K, threads, rows=16):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, 32), "float16"), C: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            a = T.alloc_shared((rows, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((rows, 32), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.clear(c)
            for k in T.serial(T.ceildiv(K, 32)):
                T.copy(A[bx * rows, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.reduce_sum(c, total, dim=1)
            {more}
            T.copy(total, C[bx * rows])
    return main
"""


@pytest.mark.nightly
@pytest.mark.parametrize(("threads", "rows", "whole"), [(32, 16, 64), (96, 32, 128)])
def test_parts_of_waves_are_rounded_up(threads: int, rows: int, whole: int, tmp_path: Path) -> None:
    path = tmp_path / "wave.py"
    path.write_text(WAVE.format(more="pass"), encoding="utf-8")
    kernel = tile2cu.load(path, target="hip:gfx942", device="cpu", check=True, threads=threads, rows=rows)
    assert f"constexpr int threads = {whole};" in kernel.source
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((40, 72), (72, 32)))
    np.testing.assert_array_equal(kernel(a, b), (a.astype(np.float32) @ b.astype(np.float32)).sum(1))


def test_threads_that_are_told_apart_are_not_added(tmp_path: Path) -> None:
    path = tmp_path / "wave.py"
    path.write_text(WAVE.format(more="C[T.get_thread_binding()] = 1.0"), encoding="utf-8")
    with pytest.raises(tile2cu.Error, match="a block cannot have 32 threads"):
        tile2cu.emit(path, target="hip:gfx942", threads=32)


ROLES = """
import tilelang.language as T

@T.prim_func
def roles(X: T.Tensor((5, 24), "float32"), Y: T.Tensor((5, 24), "float32"), Z: T.Tensor((5,), "float32")):
    with T.Kernel(5, threads=96) as b:
        mixes = T.alloc_shared((24,), "float32")
        if T.get_thread_binding() < 32:
            m = T.alloc_fragment((24,), "float32")
            for j in T.Parallel(24):
                m[j] = X[b, j] * 2
            T.copy(m, mixes)
        if T.get_thread_binding() < 32:
            s = T.alloc_fragment((24,), "float32")
            t = T.alloc_fragment((1,), "float32")
            T.copy(mixes, s)
            T.reduce_sum(s, t, dim=0)
            T.copy(t, Z[b])
        else:
            for j in T.Parallel(24):
                Y[b, j] = mixes[j] + 1
"""


def test_branches_on_the_thread_around_tiles_alone_do_not_tell_threads_apart(tmp_path: Path) -> None:
    path = tmp_path / "roles.py"
    path.write_text(ROLES, encoding="utf-8")
    kernel = tile2cu.load(path, target="hip:gfx942", device="cpu", check=True)
    assert "constexpr int threads = 128;" in kernel.source
    x = np.random.default_rng(1).integers(-9, 10, (5, 24)).astype(np.float32)
    y, z = np.zeros_like(x), np.zeros(5, np.float32)
    kernel(x, y, z)
    np.testing.assert_array_equal(y, 2 * x + 1)
    np.testing.assert_array_equal(z, 2 * x.sum(axis=1))
