"""Products of emitted HIP text, compiled by clang and run on the simulator: exact, no finding, no bank conflict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.example_calls import EXAMPLES, attention, gemm_relu
from tests.host.products import MFMA_PRODUCTS, Product
from tile2cu_runtime.amdgcn import CodeObject
from tile2cu_runtime.hip import CODE_OBJECT


@pytest.mark.sweep(cases=4)  # tests/host runs the text of each, test_mfma.py each instruction
@pytest.mark.parametrize(("target", "product", "instruction"), MFMA_PRODUCTS, ids=str)
def test_product(
    target: str, product: Product, instruction: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The result is exact, and no MFMA runs but the one that was chosen."""
    if target == "gfx950":
        request.getfixturevalue("ziglang")
    kernel = product.check(tmp_path, f"hip:{target}", "sim")
    (cost,) = kernel.costs
    assert {each.name for each in cost.instructions if each.name.startswith("v_mfma")} == {instruction}


@pytest.mark.nightly  # for each change, products count what they read
def test_attention_reads_16_bytes_a_lane_without_conflicts() -> None:
    """Also V, whose rows lie across K of their product: 128 columns are 16 lanes' chunks."""
    kernel = tile2cu.load(
        EXAMPLES / "attention.py",
        target="hip:gfx942",
        device="sim",
        check=True,
        options={"statistics": True},
        dim=128,
        is_causal=False,
        threads=256,
    )
    attention(1, 1, 128, 128, causal=False).check(kernel)
    (cost,) = kernel.costs
    assert cost.measured is not None and cost.measured.lds.cycles == cost.measured.lds.ideal
    # 8 waves in two iterations of 64 keys: K's and V's tiles. Q is in registers.
    assert cost.executed("ds_read_b128") == 8 * 2 * (2 * 64) * 128 * 2 // (64 * 16)
    assert cost.executed("ds_read_b64", "ds_read2") == 0


def test_operands_are_transposed_once_for_all_waves(tmp_path: Path) -> None:
    """Threads pair the rows of what they load: 2 of 4 words a permutation each, whichever waves read it, and no more.

    A of (K, M), whose elements a lane would read one by one, is read by 8 bytes, B of (K, N) by 16.
    """
    (cost,) = Product(shape=(128, 128, 64), ta=True).check(tmp_path, "hip:gfx942", "sim").costs
    stored = (128 + 128) * 64 // 2  # words of A and B
    assert cost.executed("v_perm_b32") == stored // 64
    assert cost.executed("v_alignbit", "ds_read_u16") == 0
    # Each of two waves along M reads its half of A, and all of B.
    assert cost.executed("ds_read_b64") + 2 * cost.executed("ds_read2") == 128 * 64 * 2 // (64 * 8)
    assert cost.executed("ds_read_b128") == 2 * 128 * 64 * 2 // (64 * 16)


@pytest.mark.nightly  # for each change: bytes, below, and test_gfx950.py
def test_attention_on_gfx950_transposes_as_it_reads(ziglang: str) -> None:
    """V goes to the products as it lies in shared memory: no permutation. (tests/host/test_hip.py counts conflicts.)"""
    kernel = tile2cu.load(
        EXAMPLES / "attention.py",
        target="hip:gfx950",
        device="sim",
        check=True,
        options={},
        dim=128,
        is_causal=False,
        threads=256,
    )
    attention(1, 1, 128, 128, causal=False).check(kernel)
    (cost,) = kernel.costs
    assert cost.executed("v_perm_b32") == 0 and cost.executed("ds_read_b64_tr_b16") == 8 * 2 * 64 * 128 * 2 // (64 * 8)
    # Rows are reduced over four lanes by swaps of lanes, not by a way through LDS.
    assert cost.executed("v_permlane16_swap", "v_permlane32_swap") > 0 and cost.executed("ds_swizzle", "ds_bperm") == 0


def test_bytes_across_k_are_transposed_as_they_are_read_on_gfx950(ziglang: str, tmp_path: Path) -> None:
    """B's bytes lie with K across their rows: no permutation, 8 bytes a lane; on gfx942 two a word, by v_perm."""
    product = Product(dtype="int8", accumulator="int32", shape=(64, 128, 128))
    wide, narrow = (product.check(tmp_path, f"hip:{chip}", "sim").costs[0] for chip in ("gfx950", "gfx942"))
    assert wide.executed("ds_read_b64_tr_b8") == 128 * 128 // (64 * 8) * 2  # each of two waves reads all of B
    assert wide.executed("v_perm_b32") == 0
    assert narrow.executed("v_perm_b32") == 2 * 128 * 128 // 64 // 4 * 2


ASKED = 'T.gemm(A_shared, B_shared, C_local, annotations={"priority": PRIORITY})'


def with_priority(folder: Path, priority: int) -> Path:
    """The example, with waves that ask for it at its product."""
    source = (EXAMPLES / "gemm_relu.py").read_text(encoding="utf-8")
    path = folder / "gemm_relu.py"
    path.write_text(
        source.replace("T.gemm(A_shared, B_shared, C_local)", ASKED.replace("PRIORITY", str(priority))),
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("priority", [pytest.param(0, marks=pytest.mark.nightly), 2])
def test_waves_at_a_product_go_first_where_asked(priority: int, tmp_path: Path) -> None:
    """All MFMAs of the code are between s_setprio and its end; without the wish there is none of either."""
    options = {"block_M": 64, "block_N": 64, "threads": 256}
    kernel = tile2cu.load(
        with_priority(tmp_path, priority), target="hip:gfx942", device="sim", check=True, options={}, **options
    )
    gemm_relu(100, 72, 64).check(kernel)
    now, during, wishes = 0, set(), 0
    for text in CodeObject.load(kernel.library.parent / CODE_OBJECT).listing.texts():
        if text.startswith("s_setprio"):
            now, wishes = int(text.split()[1]), wishes + 1
        elif text.startswith("v_mfma"):
            during.add(now)
    assert during == {priority} and (wishes > 0) == (priority > 0)
    assert ("tl::set_wave_priority<2>();" in kernel.source) == (priority > 0)


def test_priorities_are_those_of_the_hardware(tmp_path: Path) -> None:
    with pytest.raises(tile2cu.Tile2CuError, match="is 0 to 3, not 4"):
        tile2cu.load(with_priority(tmp_path, 4), target="hip:gfx942", device="sim")


def test_pipelined_gemm_of_ragged_sizes() -> None:
    """Tiles go through registers to two slots of shared memory; no access to them meets a bank conflict."""
    kernel = tile2cu.load(
        EXAMPLES / "gemm_relu.py",
        target="hip:gfx942",
        device="sim",
        check=True,
        options={"statistics": True},
        threads=256,
    )
    rng = np.random.default_rng(0)
    for m, n, k in ((128, 128, 96), (200, 136, 72), (5, 3, 7)):
        a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
        expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
        np.testing.assert_array_equal(kernel(a, b).astype(np.float64), expected)
        (cost,) = kernel.costs
        assert cost.measured is not None
        if k % 8 == 0 and n % 8 == 0:  # else elements are stored one by one
            assert cost.measured.lds.cycles == cost.measured.lds.ideal
        assert cost.count("scratch") == 0


def test_operands_are_transposed_by_8_bytes_where_threads_have_no_16() -> None:
    """B of 32 x 128 has 128 pieces of 4 x 16 bytes, for 256 threads: each loads 4 x 8, and lanes read 16."""
    kernel = tile2cu.load(
        EXAMPLES / "gemm_relu.py", target="hip:gfx942", device="sim", check=True, options={"statistics": True},
        threads=256,
    )  # fmt: skip
    assert "tl::StagedRows<tl::half, block_K, block_N, threads, 4> B_shared_next;" in kernel.source
    permutations = []
    calls = (gemm_relu(130, 136, 40), gemm_relu(5, 3, 7, exact=False), gemm_relu(128, 128, 64), gemm_relu(128, 128, 32))
    for call in calls:
        call.check(kernel)
        assert kernel.report is not None and kernel.report.is_clean
        permutations.append(kernel.costs[0].executed("v_perm_b32"))
    assert permutations[-2] - permutations[-1] == 32 * 128 // 2 // 64  # words of a tile of B
    (cost,) = kernel.costs  # of the last call: one tile
    assert cost.measured is not None and cost.measured.lds.cycles == cost.measured.lds.ideal
    # Each of two waves along M, or N, reads its half of A, or B, by 16 bytes.
    assert cost.executed("ds_read") == cost.executed("ds_read_b128") == 2 * 2 * 128 * 32 * 2 // (64 * 16)
    assert cost.executed("buffer_load_dwordx2") == 32 * 128 * 2 // (64 * 8)
