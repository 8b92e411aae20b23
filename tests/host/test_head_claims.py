"""What heads of emitted sources claim of batches and of unused memory, seen in results of the CPU engine."""

import numpy as np
import pytest

from tests.host.examples import halves, load, run
from tile2cu_runtime import LaunchError

TYPES = ["float16"] * 3 + ["int32"]
SHAPE = (2, 1, 5, 64)  # batch, heads of K and V, query heads that share one, dim


def cache(longest: int) -> list[np.ndarray]:
    """Queries, keys, values and lengths, of which each is less than `longest`."""
    rng = np.random.Generator(np.random.PCG64(3))
    data = halves([rng.normal(size=shape) for shape in (SHAPE, (2, longest, 1, 64), (2, longest, 1, 64))])
    return [*data, np.array([longest - 40, 70])]


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_nan_behind_the_end_of_a_sequence_reaches_results_through_v_alone(target: str) -> None:
    kernel = load("flash_decoding.py", dim=64, group=5, num_split=1, target=target)
    assert "// Masked rows of V (lengths decides which) in tiles that iterations load" in kernel.source
    assert "Masked rows of K (lengths decides which) are loaded, but" in kernel.source.replace("\n// ", " ")
    q, k, v, lengths = cache(150)
    expected = run(kernel, [q, k, v, lengths], TYPES)[0]
    unused = np.where(np.arange(150)[None, :, None, None] >= lengths[:, None, None, None], np.nan, 0)
    np.testing.assert_array_equal(run(kernel, [q, k + unused, v, lengths], TYPES)[0], expected)
    assert np.isnan(run(kernel, [q, k, v + unused, lengths], TYPES)[0].astype(np.float32)).all()


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("splits", [1, 3])
def test_with_zero_tail_nan_behind_the_end_reaches_no_result(splits: int) -> None:
    kernel = load("flash_decoding.py", dim=64, group=5, num_split=splits, zero_tail=True, target="cuda:sm_80")
    assert "// Masked rows of V (lengths decides which) are not loaded" in kernel.source
    assert "are multiplied by 0" not in kernel.source
    q, k, v, lengths = cache(150)
    expected = run(kernel, [q, k, v, lengths], TYPES)[0]
    unused = np.where(np.arange(150)[None, :, None, None] >= lengths[:, None, None, None], np.nan, 0)
    np.testing.assert_array_equal(run(kernel, [q, k + unused, v + unused, lengths], TYPES)[0], expected)
    assert expected.any() and kernel.report is not None and not kernel.report.findings


@pytest.mark.nightly
@pytest.mark.parametrize("page_size", [0, 64])
def test_with_zero_tail_latents_behind_the_end_may_be_nan(page_size: int) -> None:
    sizes = {"dim": 128, "pe_dim": 32, "block_N": 32, "page_size": page_size, "zero_tail": True}
    kernel = load("mla_decode.py", target="cuda:sm_80", **sizes)
    assert "// Masked rows of KV (lengths decides which) are not loaded" in kernel.source
    assert "Masked rows of K_pe (lengths decides which) are loaded, but" in kernel.source.replace("\n// ", " ")
    rng = np.random.Generator(np.random.PCG64(6))
    latents, positions = (rng.normal(size=(2, 128, cols)) for cols in (128, 32))
    q, q_pe = (rng.normal(size=(2, 16, cols)) for cols in (128, 32))
    lengths = np.array([41, 70])
    unused = np.where(np.arange(128)[None, :, None] >= lengths[:, None, None], np.nan, 0)
    found = []
    for tail in (0, unused):
        caches = [each + tail for each in (latents, positions)]
        caches = [each.reshape(4, 64, -1) for each in caches] if page_size else caches
        table = [np.array([[0, 1], [2, 3]])] if page_size else []
        types = ["float16"] * 4 + ["int32"] * (1 + len(table))
        found.append(run(kernel, [*halves([q, q_pe, *caches]), *table, lengths], types)[0])
    assert found[0].any() and np.isfinite(found[0].astype(np.float32)).all()
    np.testing.assert_array_equal(*found)
    assert kernel.report is not None and not kernel.report.findings


def test_lengths_past_the_cache_read_zeros() -> None:
    """As stated: an index that no one validates is out of bounds, where loads return zero."""
    kernel = load("flash_decoding.py", dim=64, group=5, num_split=1, target="cuda:sm_80")
    assert "lengths (trip counts; index K and V along max_len) are not validated" in kernel.source.replace("\n// ", " ")
    q, k, v, _ = cache(150)
    longer = [np.concatenate([each, np.zeros_like(each)], axis=1) for each in (k, v)]
    expected = run(kernel, [q, *longer, np.array([260, 151])], TYPES)[0]
    np.testing.assert_array_equal(run(kernel, [q, k, v, np.array([260, 151])], TYPES)[0], expected)
    assert kernel.report is not None and not kernel.report.findings


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_the_output_of_an_empty_sequence_is_zero(target: str) -> None:
    kernel = load("flash_decoding.py", dim=64, group=5, num_split=3, target=target)
    assert "the output of an empty one is zero" in kernel.source.replace("\n// ", " ")
    q, k, v, lengths = cache(150)
    lengths[0] = 0
    found = run(kernel, [q, k, v, lengths], TYPES)[0]
    assert not found[0].any() and np.isfinite(found[1].astype(np.float32)).all() and found[1].any()
    assert kernel.report is not None and not kernel.report.findings


@pytest.mark.nightly
@pytest.mark.parametrize("splits", [1, 3])
def test_latent_attention_of_an_empty_sequence_is_zero(splits: int) -> None:
    sizes = {"dim": 128, "pe_dim": 32, "block_N": 32, "num_split": splits}
    kernel = load("mla_decode.py", target="cuda:sm_90a", **sizes)
    rng = np.random.Generator(np.random.PCG64(6))
    shapes = ((2, 16, 128), (2, 16, 32), (2, 70, 128), (2, 70, 32))
    data = [*halves([rng.normal(size=shape) for shape in shapes]), np.array([0, 70])]
    found = run(kernel, data, ["float16"] * 4 + ["int32"])[0]
    assert not found[0].any() and np.isfinite(found[1].astype(np.float32)).all() and found[1].any()


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_a_remainder_of_a_quotient_that_is_an_extent_is_rejected(target: str) -> None:
    """K = 48 in groups of 32: S would have one column, and the last 16 terms no scale."""
    kernel = load("linear_int4.py", target=target)
    x, w, s = np.ones((4, 48), np.float16), np.ones((8, 24), np.uint8), np.ones((8, 1), np.float16)
    with pytest.raises(LaunchError, match="TL_NOT_SUPPORTED"):
        kernel(x, w, s, np.zeros((4, 8), np.float16))
    x, w, s = np.ones((4, 64), np.float16), np.full((8, 32), 0x99, np.uint8), np.ones((8, 2), np.float16)
    y = np.zeros((4, 8), np.float16)
    kernel(x, w, s, y)
    np.testing.assert_array_equal(y, 64)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_rows_of_a_gemm_do_not_depend_on_the_batch(target: str) -> None:
    sizes = {"block_M": 128, "block_N": 64, "threads": 256} if target == "cuda:sm_90a" else {"block_M": 64}
    kernel = load("gemm_relu.py", target=target, **sizes)
    assert (
        "Batch-invariant: the order in which an element's terms are added depends only on K."
        in kernel.source.replace("\n// ", " ")
    )
    rng = np.random.Generator(np.random.PCG64(4))
    a, b = halves([rng.normal(size=(200, 136)), rng.normal(size=(136, 72))])
    whole = run(kernel, [a, b])[0]
    for row in (0, 77, 199):
        np.testing.assert_array_equal(run(kernel, [a[row : row + 1], b])[0][0], whole[row])
