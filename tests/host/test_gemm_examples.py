"""The products among the examples on the CPU engine against float64, in the variants that emitted/ does not have."""

import ml_dtypes
import numpy as np
import pytest

import inputs
import references
from tests.host.example_calls import assert_close
from tests.host.examples import assert_clean, halves, load, run


def random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("dtype", "transposed", "bindings"),
    [
        ("bfloat16", "A", {"bias": True, "activation": "relu"}),
        ("float16", "AB", {"activation": "gelu", "block_N": 64}),
        ("float8_e4m3fn", "B", {"out_dtype": "float32"}),
        ("float8_e5m2", "", {"bias": True}),
        ("int8", "B", {"accum_dtype": "int32", "out_dtype": "int32", "bias": True}),
        ("int8", "A", {"accum_dtype": "int32", "out_dtype": "int32"}),
        ("bfloat16", "B", {"bias": True, "target": "cuda:sm_90a"}),
        ("float16", "A", {"block_N": 256, "threads": 256, "target": "cuda:sm_90a"}),
    ],
)
def test_gemm(dtype: str, transposed: str, bindings: dict[str, object]) -> None:
    flags = {f"transpose_{name}": name in transposed for name in "AB"}
    kernel = load("gemm.py", dtype=dtype, **flags, **bindings)
    for m, n, k in ((152, 136, 208), (8, 8, 16)):
        shapes = [(k, m) if flags["transpose_A"] else (m, k), (n, k) if flags["transpose_B"] else (k, n)]
        integers = dtype == "int8"
        data = inputs.small_integers(random(m), shapes) if integers else inputs.normals(random(m), shapes)
        data = halves(data, getattr(ml_dtypes, dtype, dtype))
        bias = inputs.small_integers(random(n), [(n,)]) if "bias" in bindings else []
        expected = references.gemm([*data, *bias], {**flags, **bindings})
        types = [dtype, dtype, str(bindings.get("accum_dtype", "float32"))][: 2 + len(bias)]
        assert_close(run(kernel, [*data, *bias], types)[0], expected, 0.0 if integers else 2e-3)
        if dtype.endswith("16") or transposed == "B":
            assert_clean(kernel)
        else:  # lanes gather elements of 8 bits whose K lies across rows: some banks meet
            assert kernel.report is not None and not kernel.report.findings


def test_batched_gemm_on_hopper() -> None:
    """Five blocks take nine tiles of three matrices, and panels that the last rows do not fill."""
    tiles = {"programs": 5, "panel": 2, "block_M": 64, "block_N": 64, "threads": 128}
    kernel = load("gemm_batched.py", "gemm_batched", target="cuda:sm_90a", **tiles)
    data = inputs.small_integers(random(0), [(3, 150, 72), (3, 72, 104)])
    np.testing.assert_array_equal(run(kernel, data)[0], data[0] @ data[1])
    assert_clean(kernel)


def test_gemm_of_groups_on_hopper() -> None:
    kernel = load("gemm_batched.py", "gemm_grouped", target="cuda:sm_90a", block_N=64, block_K=64)
    assert "wgmma" in kernel.source
    for tokens, groups in ((300, 5), (3, 7), (64, 1)):
        data = halves(inputs.grouped(random(tokens), [(tokens, 72), (groups, 72, 104), (groups + 1,)]))
        found = run(kernel, data, ["float16", "float16", "int32"], groups=groups)[0]
        assert_close(found, references.gemm_grouped(data, {}), 2e-3)
        assert_clean(kernel)


@pytest.mark.nightly
@pytest.mark.parametrize("splits", [1, 7])
def test_gemm_in_parts_of_k(splits: int) -> None:
    kernel = load("gemm_splitk.py", "gemm_splitk", splits=splits, block_M=64, block_N=64)
    for m, n, k in ((100, 72, 500), (3, 8, 1), (64, 64, 0)):
        data = inputs.small_integers(random(k), [(m, k), (k, n)])
        np.testing.assert_array_equal(run(kernel, data)[0], data[0] @ data[1])
        assert_clean(kernel)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("splits", [1, 2, 4, 8])
def test_gemm_of_few_rows_in_parts_of_k(splits: int) -> None:
    """Also more parts than tiles of K, several tiles of rows, and rows at odd multiples of 2 bytes."""
    kernel = load("gemm_few_rows.py", target="cuda:sm_90a", splits=splits, block_K=64)
    for m, n, k in ((16, 72, 500), (1, 8, 1), (33, 65, 64), (5, 64, 0)):
        data = inputs.small_integers(random(k), [(m, k), (k, n)])
        np.testing.assert_array_equal(run(kernel, data)[0], np.maximum(data[0] @ data[1], 0))
        assert_clean(kernel)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "tile",
    [
        {"splits": 3, "block_M": 192, "threads": 384},
        {"splits": 8, "block_M": 16, "block_N": 64, "threads": 128},
        {"splits": 2, "num_stages": 5},
        {"splits": 1, "block_M": 64, "block_N": 64, "threads": 128},
    ],
    ids=str,
)
def test_gemm_whose_blocks_add_strips_of_rows(tile: dict[str, int]) -> None:
    """With a producer warp that exits before the cluster's barriers, and with 16 rows, which wgmma does not take."""
    kernel = load("gemm_clusters.py", target="cuda:sm_90a", **tile)
    assert ("tl::is_producer" in kernel.source) == (tile.get("block_M", 128) > 16)
    for m, n, k in ((16, 72, 504), (1, 8, 8), (200, 136, 64), (5, 64, 0)):
        data = inputs.small_integers(random(k), [(m, k), (k, n)])
        np.testing.assert_array_equal(run(kernel, data)[0], np.maximum(data[0] @ data[1], 0))
        assert_clean(kernel)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("bindings", [{}, {"parts": 1, "block_M": 64, "threads": 128}], ids=str)
def test_float8_with_scales(bindings: dict[str, object]) -> None:
    """K that no group fills, N that leaves a half of its last tile empty, few rows, and no product."""
    kernel = load("gemm_fp8_scaled.py", target="cuda:sm_90a", **bindings)
    for m, n, k in ((150, 328, 304), (1, 8, 16), (64, 128, 0)):
        groups = -(-k // 128)
        shapes = [(m, k), (n, k), (m, groups), (-(-n // 128), groups)]
        data = inputs.scaled_integers(random(m), shapes)
        found = run(kernel, data, ["float8_e4m3fn", "float8_e4m3fn", "float32", "float32"])[0]
        np.testing.assert_array_equal(found, halves([references.scaled_product(data, {})], ml_dtypes.bfloat16)[0])
        assert kernel.report is not None and not kernel.report.findings


@pytest.mark.nightly
@pytest.mark.parametrize("programs", [1, 3, 50])
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "cuda:sm_100a"])
def test_blocks_that_take_tile_after_tile(programs: int, target: str) -> None:
    """Also more blocks than tiles, tiles over the edge, and none; panels of columns that the last one does not fill."""
    tiles = {"block_M": 64, "block_N": 64, "block_K": 32, "threads": 128}
    kernel = load("gemm_persistent.py", programs=programs, target=target, **tiles)
    assert ("pipeline.producer_acquire(stage)" in kernel.source) == (target != "cuda:sm_80")
    for m, n, k in ((152, 136, 208), (72, 600, 40), (8, 8, 16), (64, 64, 0), (0, 64, 64)):
        data = inputs.small_integers(random(k), [(m, k), (k, n)])
        np.testing.assert_array_equal(run(kernel, data)[0], np.maximum(data[0] @ data[1], 0))
        assert_clean(kernel)


@pytest.mark.nightly
@pytest.mark.parametrize(("rows", "columns", "staged"), [(64, 256, 192), (128, 192, 64)])
def test_a_result_leaves_some_of_its_columns_at_a_time(rows: int, columns: int, staged: int) -> None:
    """Five slots of 40 KB leave 27 KB for a result of 32, or of 48."""
    tiles = {"block_M": rows, "block_N": columns, "threads": 128, "num_stages": 5}
    kernel = load("gemm_persistent.py", programs=2, target="cuda:sm_90a", **tiles)
    assert f"tl::StagingTile<tl::half, block_M, {staged}, tl::Swizzle128B> C_local_staging;" in kernel.source
    data = inputs.small_integers(random(0), [(152, 136), (136, 520)])
    np.testing.assert_array_equal(run(kernel, data)[0], np.maximum(data[0] @ data[1], 0))
    assert_clean(kernel)


@pytest.mark.nightly
@pytest.mark.parametrize(("programs", "transposed"), [(5, False), (7, True)])
def test_tiles_that_fill_no_wave_are_cut(programs: int, transposed: bool) -> None:
    """Of 9 tiles 4 by five blocks, or 2 by seven, of which the last takes the ends of both; of 20 none or 6; also
    tiles over the edge, and none.

    Waves, and panels of tiles, that run backwards are among them.
    """
    tiles = {"block_M": 64, "block_N": 64, "block_K": 32, "threads": 128, "min_saved_iterations": 1, "panel": 2}
    kernel = load("gemm_hybrid.py", programs=programs, transpose_B=transposed, target="cuda:sm_90a", **tiles)
    assert "tl::tma_store_start(C_local, " in kernel.source and "tl::copy(C_local, parts(" in kernel.source
    for m, n, k in ((152, 136, 208), (72, 600, 40), (64, 64, 0), (0, 64, 64)):
        data = inputs.small_integers(random(k), [(m, k), (k, n)])
        stored = [data[0], np.ascontiguousarray(data[1].T) if transposed else data[1]]
        np.testing.assert_array_equal(run(kernel, stored)[0], np.maximum(data[0] @ data[1], 0))
        assert_clean(kernel)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("programs", [1, 5])
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_stream_k_adds_to_what_c_holds(programs: int, target: str) -> None:
    kernel = load(
        "gemm_splitk.py", "gemm_streamk", programs=programs, target=target, block_M=64, block_N=64, threads=128
    )
    assert ("tl::WgmmaAccumulator" in kernel.source) == (target == "cuda:sm_90a")
    rows_of = 1 if target == "cuda:sm_80" else 8  # halves: TMA moves rows of 16 bytes
    for m, n, k in ((100, 72, 500 // rows_of * rows_of), (200, 200, 40), (3, 8, rows_of)):
        a, b, c = inputs.small_integers(random(k), [(m, k), (k, n), (m, n)])
        sums = c.astype(np.float32)
        kernel(a.astype(np.float16), b.astype(np.float16), sums)
        np.testing.assert_array_equal(sums, a @ b + c)
        assert kernel.report is not None and not kernel.report.findings


NF4 = np.linspace(-1, 1, 16) ** 3  # any table will do


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("form", ["gemm", "gemv"])
@pytest.mark.parametrize(
    ("weights", "dtype", "target"), [("fp4", "float16", "cuda:sm_80"), ("nf4", "bfloat16", "cuda:sm_90a")]
)
def test_weights_of_four_bits(weights: str, dtype: str, target: str, form: str) -> None:
    sizes = {"block_K": 128} if form == "gemv" else {}
    kernel = load("dequant.py", f"dequant_{form}", weights=weights, group=64, dtype=dtype, target=target, **sizes)
    numpy = getattr(ml_dtypes, dtype, dtype)
    assert ("wgmma" in kernel.source) == (form == "gemm" and target == "cuda:sm_90a")
    for m, n, k in ((5, 72, 448), (1, 8, 64)):
        x, packed, scales = inputs.four_bits(random(n), [(m, k), (n, k // 2), (n, k // 64)])
        table = [NF4] if weights == "nf4" else []
        x, scales, *table = halves([x, scales, *table], numpy)
        expected = references.dequant([x, packed, scales, *table], {"weights": weights, "group": 64})
        types = [dtype, "uint8", dtype, *([dtype] if table else [])]
        found = run(kernel, [x, packed, scales, *table], types)[0]
        assert_close(found, expected, 2e-3 if dtype == "float16" else 1e-2)
        assert kernel.report is not None and not kernel.report.findings


@pytest.mark.nightly
@pytest.mark.parametrize(("group", "zeros"), [(None, ""), (32, "uint8"), (64, "float16")])
@pytest.mark.parametrize("partial", ["float16", "float32"])
def test_rows_times_integers_of_four_bits(group: int | None, zeros: str, partial: str) -> None:
    """A scale a row and none, or a scale and a zero a group: rows and columns that leave tiles partly empty."""
    kernel = load("dequant.py", "dequant_gemv", group=group, zero_dtype=zeros or "uint8", partial_dtype=partial)
    assert "tl::unpack_uint4_interleaved(" in kernel.source
    for m, n, k in ((2, 19, 2112), (1, 8, 64)):
        groups = (n, k // group) if group else (n,)
        x, packed, scales, zero = inputs.four_bits(random(n), [(m, k), (n, k // 2), groups, groups])
        x, scales = halves([x, scales], np.float16)
        data = [x, packed, scales, *([zero] if group else [])]
        found = run(kernel, data, ["float16", "uint8", "float16", *([zeros] if group else [])])[0]
        every = [zero, group] if group else [np.full((n, 1), 8.0), k]
        expected = references.dequant([x, packed, scales.reshape(n, -1), every[0]], {"group": every[1]})
        assert_close(found, expected, 2e-3 if partial == "float16" else 1e-3)
        assert kernel.report is not None and not kernel.report.findings


@pytest.mark.nightly
def test_ternary_weights_on_hopper() -> None:
    kernel = load("w2a8.py", "w2a8_gemm", target="cuda:sm_90a")
    assert "wgmma" in kernel.source
    for m, n, k in ((70, 72, 320), (1, 8, 64)):
        data = inputs.two_bits(random(m), [(m, k), (n, k // 4)])
        np.testing.assert_array_equal(run(kernel, data, ["int8", "uint8"])[0], references.w2a8(data, {}))
        assert_clean(kernel)
