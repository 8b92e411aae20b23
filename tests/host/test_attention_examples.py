"""The attention examples on the CPU engine against float64, in the variants that emitted/ does not have."""

from pathlib import Path

import numpy as np
import pytest

import inputs
import references
from tests.host.example_calls import EXAMPLES, assert_close
from tests.host.examples import assert_clean, halves, load, run

HOPPER = {"target": "cuda:sm_90a", "block_M": 128, "threads": 256}
INVALID_SIZE = 1  # tl/status.h


def random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.nightly
@pytest.mark.parametrize(("window", "target"), [(1, {}), (70, {}), (70, HOPPER), (0, HOPPER)])
def test_attention_of_groups_in_a_window(window: int, target: dict[str, object]) -> None:
    kernel = load("attention.py", dim=64, group=2, is_causal=True, window=window, **target)
    for batch, heads, length in ((1, 4, 200), (2, 2, 65)):
        shapes = [(batch, length, heads, 64), *[(batch, length, heads // 2, 64)] * 2]
        data = halves(inputs.normals(random(length), shapes))
        expected = references.attention(data, {"is_causal": True, "window": window})
        assert_close(run(kernel, data)[0], expected, 2e-3)
        assert_clean(kernel)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("causal", "window", "slack"), [(False, 0, 8), (False, 0, 0), (True, 0, 8), (True, 70, 8)])
def test_attention_by_blocks_that_stay(causal: bool, window: int, slack: int) -> None:
    """More tiles than blocks: in turns, or from a dynamic scheduler."""
    kernel = load("attention.py", dim=128, block_N=128, is_causal=causal, window=window, slack=slack, **HOPPER)
    assert ("scheduler.fetch(" in kernel.source) == causal and "tl::persistent_grid" in kernel.source
    apart = not causal and not slack
    assert ("!masked(k)" in kernel.source) == apart, "turns that mask nothing have a loop of their own"
    for batch, heads, length in ((1, 4, 300), (2, 1, 129), (1, 2, 40)):
        data = halves(inputs.normals(random(length), [(batch, length, heads, 128)] * 3))
        expected = references.attention(data, {"is_causal": causal, "window": window})
        assert_close(run(kernel, data)[0], expected, 2e-3)
        assert_clean(kernel)
    # Tiles are no blocks: there may be more than 65,535 of them along y and z, but no more than an int numbers.
    q, k, v = (np.zeros((65_536, 0, 1, 128), np.float16) for _ in range(3))
    assert run(kernel, [q, k, v])[0].shape == q.shape
    sizes = {"batch": 1 << 17, "seq_len": 128, "heads": 1 << 14}
    given = [sizes.get(argument.name, 1 << 20) for argument in kernel.manifest.arguments]
    assert kernel._module.call(*given, 0) == INVALID_SIZE


@pytest.mark.nightly
@pytest.mark.parametrize(("causal", "tile"), [(True, {"block_M": 192, "threads": 384, "block_N": 80}), (False, {})])
def test_a_reference_that_stays_behind_the_maxima(causal: bool, tile: dict[str, int]) -> None:
    """Keys grow from token to token, so that it has to follow, in some warps and not in others.

    Of the last block of 500 queries a warpgroup has none, and the first one ends turns before the second.
    """
    kernel = load("attention.py", dim=128, is_causal=causal, **HOPPER | tile)
    assert "const bool changed = tl::any_changed(scores_max_prev, scores_max);" in kernel.source
    assert ("const int own_trip_count = " in kernel.source) == causal
    for batch, heads, length in ((1, 2, 500), (2, 1, 129)):
        q, k, v = inputs.normals(random(length), [(batch, length, heads, 128)] * 3)
        q[:, ::3] *= 0.1
        data = halves([q, k * np.linspace(1, 12, length)[:, None, None], v])
        assert_close(run(kernel, data)[0], references.attention(data, {"is_causal": causal}), 2e-3)
        assert_clean(kernel)


@pytest.mark.nightly
def test_queries_behind_cached_keys(tmp_path: Path) -> None:
    """Query i sees keys up to i and as many as there are more keys than queries; where there are fewer, some see none.

    Those are left out here: a maximum of nothing is minus infinity, and their results are no numbers.
    """
    text = (EXAMPLES / "attention.py").read_text(encoding="utf-8")
    visible = "bx * block_M + i >= k * block_N + j"
    mask = f"acc_s[i, j] = T.if_then_else({visible}, 0, -T.infinity(accum_dtype))"
    indent = "\n" + 24 * " "
    changes = {
        "    seq_len,\n": "    seq_len,\n    seq_kv,\n",
        "kv_shape = (batch, seq_len,": "kv_shape = (batch, seq_kv,",
        "ceildiv(seq_len, block_N), T.ceildiv((bx + 1) * block_M,": (
            "ceildiv(seq_kv, block_N), T.ceildiv((bx + 1) * block_M + seq_kv - seq_len,"
        ),
        mask: "q_idx = bx * block_M + i + seq_kv - seq_len" + indent + mask.replace("bx * block_M + i", "q_idx"),
    }
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "attention_cached.py").write_text(text, encoding="utf-8")
    tile = {"block_M": 192, "block_N": 80, "threads": 384}
    kernel = load(str(tmp_path / "attention_cached.py"), kernel="attention", dim=64, is_causal=True, **HOPPER | tile)
    assert "const int q_idx" in kernel.source, "names that a mask gives to what it compares are kept"
    assert "columns_seen < 64 ? " in kernel.source
    for queries, keys in ((200, 300), (200, 130)):
        q, k, v = halves(inputs.normals(random(keys), [(1, queries, 1, 64), *[(1, keys, 1, 64)] * 2]))
        cached, see_none = max(0, keys - queries), max(0, queries - keys)
        all_queries = np.concatenate([np.zeros((1, cached, 1, 64)), q[:, see_none:]], axis=1)
        expected = references.attention([all_queries, k, v], {"is_causal": True})[:, cached:]
        assert_close(run(kernel, [q, k, v])[0][:, see_none:], expected, 2e-3)
        assert_clean(kernel)


BLOCKS = [
    (False, {}, 0, False),
    (True, HOPPER | {"block_N": 128}, 1, True),
    (False, HOPPER | {"block_N": 128, "dim": 128, "slack": 0}, 1, True),
    (True, {"target": "cuda:sm_90a"}, 1, False),
]


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("causal", "target", "overlaps", "stays"), BLOCKS)
def test_attention_of_the_blocks_that_a_mask_keeps(
    causal: bool, target: dict[str, object], overlaps: int, stays: bool
) -> None:
    """Some rows of blocks keep all, some none, and some of causal ones only keys that come later. Blocks that stay are
    told by their producer which turns those are.
    """
    kernel = load("attention_block_sparse.py", is_causal=causal, **{"dim": 64, **target})
    dim = int(str(target.get("dim", 64)))
    assert kernel.source.count("tl::gemm_wait<1>(acc_s);") == overlaps
    assert ("tl::ActiveIterationPipeline<" in kernel.source) == stays
    sides = {name: int(str(target.get(name, 64))) for name in ("block_M", "block_N")}
    for batch, heads, length in ((1, 3, 500), (2, 1, 129), (1, 2, 40)):
        shapes = [(batch, heads, length, dim)] * 3
        flags = (batch, heads, *(-(-length // side) for side in sides.values()))
        data = halves(inputs.block_sparse(random(length), [*shapes, flags]))
        expected = references.attention_block_sparse(data, {"is_causal": causal, **sides})
        assert_close(run(kernel, data, ["float16"] * 3 + ["bool"])[0], expected, 2e-3)
        assert_clean(kernel)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("causal", "target"), [(False, {}), (True, HOPPER)], ids=["full", "causal on Hopper"])
def test_attention_of_packed_sequences(causal: bool, target: dict[str, object]) -> None:
    kernel = load("attention_varlen.py", dim=64, group=2, is_causal=causal, **target)
    for batch, tokens, tokens_k in ((3, 200, 200), (4, 130, 300), (4, 300, 50)):
        shapes = [(tokens, 4, 64), *[(tokens_k, 2, 64)] * 2, (batch + 1,), (batch + 1,)]
        data = halves(inputs.packed(random(tokens), shapes))
        types = ["float16"] * 3 + ["int32"] * 2
        expected = references.attention_varlen(data, {"is_causal": causal})
        assert_close(run(kernel, data, types, batch=batch, max_seqlen=tokens)[0], expected, 2e-3)
        assert_clean(kernel)


@pytest.mark.nightly
@pytest.mark.parametrize(("causal", "staged"), [(False, True), (True, False)])
def test_packed_sequences_by_blocks_that_stay(causal: bool, staged: bool, tmp_path: Path) -> None:
    """Whole blocks of queries leave by TMA, which must not write to the next sequence's rows; with a result that the
    kernel stages by hand, too. Of the last lengths 1,194 of 1,200 tiles are idle.
    """
    text = (EXAMPLES / "attention_varlen.py").read_text(encoding="utf-8")
    if staged:
        by_hand = "O_shared = T.alloc_shared((block_M, dim), dtype)\n            T.copy(acc_o, O_shared)\n            "
        text = text.replace("= acc_o[i, j]\n", "= O_shared[i, j]\n")
        text = text.replace(store := text[text.rindex("for i, j in T.Parallel") :], by_hand + store)
    assert text.count("O_shared") == 3 * staged
    (tmp_path / "attention_varlen.py").write_text(text, encoding="utf-8")
    kernel = load(str(tmp_path / "attention_varlen.py"), dim=128, block_N=128, is_causal=causal, **HOPPER)
    assert "scheduler.schedule(work_tile, is_empty)" in kernel.source and "O_shared;" not in kernel.source
    assert "tl::persistent_grid" in kernel.source and "tl::tma_store_start<" in kernel.source
    packed = [((0, 1, 128, 0, 257), (5, 0, 128, 7, 300), 257), ((130, 3), (20, 400), 130), ((0,), (0,), 0)]
    for lengths, lengths_k, longest in (*packed, ((100, 0, 0, 5, 0, 60), (100, 3, 0, 5, 0, 200), 100 * 128)):
        starts, starts_k = ([0, *np.cumsum(each)] for each in (lengths, lengths_k))
        shapes = [(starts[-1], 2, 128), *[(starts_k[-1], 2, 128)] * 2]
        data = [*halves(inputs.normals(random(len(lengths)), shapes)), np.array(starts), np.array(starts_k)]
        expected = references.attention_varlen(data, {"is_causal": causal})
        types = ["float16"] * 3 + ["int32"] * 2
        found = run(kernel, data, types, batch=len(lengths), max_seqlen=longest)[0]
        assert_close(found, expected, 2e-3)
        assert_clean(kernel)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("causal", "target", "dim"), [(True, "cuda:sm_80", 64), (False, "cuda:sm_90a", 128)])
def test_attention_forward_and_backward(causal: bool, target: str, dim: int) -> None:
    sizes = {"dim": dim, "is_causal": causal, "target": target}
    forward = load("attention_backward.py", "attention_forward", **sizes)
    backward = load("attention_backward.py", "attention_backward", **sizes)
    assert ("wgmma" in backward.source) == (target == "cuda:sm_90a")
    shape = (1, 150, 2, dim)
    q, k, v, do = halves(inputs.normals(random(1), [shape] * 4))
    output, lse = run(forward, [q, k, v])
    for found, expected in zip(
        (output, lse), references.attention_forward([q, k, v], {"is_causal": causal}), strict=True
    ):
        assert_close(found, expected, 2e-3)
    assert_clean(forward)
    types = ["float16"] * 4 + ["float32", "float16"]
    data = [q, k, v, output.astype(np.float64), lse.astype(np.float64), do]
    for found, expected in zip(
        run(backward, data, types), references.attention_backward(data, {"is_causal": causal}), strict=True
    ):
        assert_close(found, expected, 4e-3)
    assert backward.report is not None and not backward.report.findings


@pytest.mark.nightly
def test_keys_past_the_end_leave_no_trace_in_dq() -> None:
    """Their probabilities, exp of minus a very negative logarithm, would be infinite."""
    kernel = load("attention_backward.py", "attention_backward", dim=64)
    q, k, v, do = halves(inputs.normals(random(2), [(1, 70, 1, 64)] * 4))
    q, k = np.abs(q) + 2, -np.abs(k) - 2
    output, lse = references.attention_forward([q, k, v], {})
    assert lse.max() < -16  # half's largest number is below 2 to the 16
    data = [q, k, v, *halves([output]), lse, do]
    expected = references.attention_backward(data, {})
    for found, gradient in zip(run(kernel, data, ["float16"] * 4 + ["float32", "float16"]), expected, strict=True):
        assert_close(found, gradient, 3e-2)  # gradients nearly cancel here, and the output's rounding does not


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("group", "splits", "target"), [(70, 1, "cuda:sm_80"), (5, 8, "cuda:sm_80"), (5, 3, "cuda:sm_90a")]
)
def test_flash_decoding(group: int, splits: int, target: str) -> None:
    kernel = load("flash_decoding.py", dim=64, group=group, num_split=splits, target=target)
    for batch, kv_heads, longest in ((3, 2, 200), (2, 1, 64)):
        caches = [(batch, longest, kv_heads, 64)] * 2
        data = halves(inputs.cache(random(longest), [(batch, kv_heads, group, 64), *caches, (batch,)]))
        types = ["float16"] * 3 + ["int32"]
        assert_close(run(kernel, data, types)[0], references.flash_decoding(data, {}), 2e-3)
        assert_clean(kernel)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("splits", "page_size", "target"), [(1, 0, "cuda:sm_90a"), (1, 32, "cuda:sm_80"), (3, 64, "cuda:sm_90a")]
)
def test_mla_decode(splits: int, page_size: int, target: str) -> None:
    sizes = {"dim": 128, "pe_dim": 32, "block_N": 32, "num_split": splits, "page_size": page_size}
    kernel = load("mla_decode.py", target=target, **sizes)
    for batch, heads in ((3, 16), (2, 70)):
        queries = [(batch, heads, 128), (batch, heads, 32)]
        if page_size:
            pool = [(9, page_size, 128), (9, page_size, 32)]
            data = halves(inputs.paged_cache(random(heads), [*queries, *pool, (batch, 3), (batch,)]))
        else:
            data = halves(inputs.cache(random(heads), [*queries, (batch, 130, 128), (batch, 130, 32), (batch,)]))
        if heads == 70:  # scores grow from token to token, so that the softmax's reference has to follow
            data[2] = (data[2] * np.linspace(1, 12, data[2].shape[1])[:, None]).astype(data[2].dtype)
        types = ["float16"] * 4 + ["int32"] * (len(data) - 4)
        assert_close(run(kernel, data, types)[0], references.mla_decode(data, {}), 2e-3)
        assert kernel.report is not None and not kernel.report.findings
    if target == "cuda:sm_90a":
        first, length = (
            kernel.source.index(text) for text in ("tl::mbarrier_arrive_expect(prologue_full", "= lengths(b);")
        )
        assert first < length, "the prologue's loads do not wait for the trip count"
