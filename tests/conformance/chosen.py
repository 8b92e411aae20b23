"""Explicit arguments for kernels to which random ones give no meaning, or too long a run: tables and indices.

By the kernel's file and name; given.json has further arguments of their factories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

# The sizes, and the tensors that are not random.
Chosen = tuple[dict[str, int], dict[str, np.ndarray]]


def attention_with_sinks(rng: np.random.Generator) -> Chosen:
    """Two sequences that fill no tile, of more keys than queries."""
    sizes = {"UQ": 150, "heads": 16, "UKV": 210, "batch_size": 2, "N_CTX": 96, "max_seq_len": 96}
    return sizes, {"cu_seqlens_q": np.array([0, 60, 150]), "cu_seqlens_k": np.array([0, 80, 210])}


def block_sparse_attention(rng: np.random.Generator) -> Chosen:
    """Four tiles of rows, of which each sees its own and some before it."""
    mask = np.tril(rng.random((2, 2, 4, 4)) < 0.6) | np.eye(4, dtype=bool)
    return {"batch": 2, "heads": 2, "seq_len": 200}, {"BlockSparseMask": mask}


def paged_decoding(rng: np.random.Generator) -> Chosen:
    """Sequences of 700 and 500 keys in pages of 256, of which tiles of 64 are named, the last first; some name none."""
    sizes = {"batch": 2, "heads": 16, "num_pages": 6, "heads_kv": 2, "max_selected_blocks": 5}
    lengths, named = np.array([700, 500]), np.full((2, 2, 5), -1)
    for sequence, length in enumerate(lengths):
        last = (length - 1) // 64
        for head in range(2):
            others = np.sort(rng.choice(last, 4 - sequence, replace=False))[::-1]
            named[sequence, head, : 1 + len(others)] = [last, *others]
    tables = {"block_table": np.array([[3, 0, 5], [1, 4, 2]]), "cache_seqlens": lengths, "block_indices": named}
    return sizes | {"max_num_blocks_per_seq": 3, "num_split": 2}, tables


def sparse_latent_attention(rng: np.random.Generator) -> Chosen:
    """Six tiles of keys in two buffers. The query attends to the first tiles of a buffer completely, to later ones
    in part.
    """
    first, keys = 350, 500
    named = rng.integers(0, keys, (1, 1, 1, 384))
    named[..., :128] = rng.permutation(first)[:128]
    return {"batch": 1, "seq_len": 1, "seq_len_kv": keys}, {"Indices": named, "q_start_index_s": np.array([first])}


def chunks_with_gates(rng: np.random.Generator) -> Chosen:
    """Three chunks of 64 and a part of one; gates that fall along each, rows of length 1."""
    sizes = {"B": 2, "S": 200, "H": 2, "DV": 48}
    falls = -np.abs(rng.standard_normal((2, 200, 2))) / 10
    gates = np.concatenate([np.cumsum(falls[:, at : at + 64], axis=1) for at in range(0, 200, 64)], axis=1)
    rows = {name: rng.standard_normal((2, 200, 2, width)) for name, width in (("K", 128), ("W", 128), ("U", 48))}
    return sizes, {"G": gates} | {name: x / np.linalg.norm(x, axis=-1, keepdims=True) for name, x in rows.items()}


def decoding_with_scores(rng: np.random.Generator) -> Chosen:
    """Sequences of as many tiles as the table of maxima has room for: what is past an end is not written."""
    return {"batch": 2, "total_seqlen_k": 684}, {"cu_seqlens_k": np.array([0, 384, 684])}


def native_sparse_attention(rng: np.random.Generator) -> Chosen:
    """One sequence: of several, each is computed as often as there are some."""
    tokens = 70
    places = np.stack([np.zeros(tokens, int), np.arange(tokens)], axis=1)
    named = rng.integers(0, 1 + np.arange(tokens) // 32, (2, tokens)).T[..., None]
    tables = {"Offsets": np.array([0, tokens]), "TokenIndices": places, "BlockIndices": named}
    return {"c_seq_len": tokens, "heads": 32}, tables | {"BlockCounts": np.ones((tokens, 2), int)}


def two_of_four(rng: np.random.Generator) -> Chosen:
    """Of each four elements the last and one other, or a single one, or none: behind a second one it reads too far."""
    groups = np.zeros((32, 512, 4))
    np.put_along_axis(groups, rng.integers(0, 3, (32, 512, 1)), rng.choice([-2.0, 0.0, 3.0], (32, 512, 1)), axis=-1)
    groups[..., 3] = rng.choice([-1.0, 0.0, 5.0], (32, 512))
    return {"S": 32}, {"dense": groups.reshape(32, 2048)}


def whole_blocks(rng: np.random.Generator) -> Chosen:
    """Rows of whole blocks: what is past the end of another row is in the next."""
    return {"M": 256, "N": 384}, {}


def above_the_minimum(rng: np.random.Generator) -> Chosen:
    """An element that the literal 42 is less than."""
    return {}, {"dst": np.array([100.0])}


CHOSEN: Mapping[tuple[str, str], Callable[[np.random.Generator], Chosen]] = {
    ("example_gqa_sink_bwd_varlen.py", "flashattn_fwd"): attention_with_sinks,
    ("example_tilelang_block_sparse_attn.py", "blocksparse_flashattn"): block_sparse_attention,
    ("example_tilelang_sparse_gqa_decode_paged.py", "flashattn"): paged_decoding,
    ("sparse_mla_fwd_pipelined.py", "sparse_mla_fwd"): sparse_latent_attention,
    ("sparse_mla_fwd_seesaw.py", "sparse_mla_fwd"): sparse_latent_attention,
    ("example_chunk_delta_h.py", "tilelang_chunk_gated_delta_rule_fwd_h"): chunks_with_gates,
    ("example_gqa_decode_varlen_logits.py", "flashattn"): decoding_with_scores,
    ("example_tilelang_nsa_fwd_varlen.py", "native_sparse_attention_varlen"): native_sparse_attention,
    ("sparse_utils.py", "_compress_fn"): two_of_four,
    ("test_tilelang_language_composable_index.py", "tilelang_composable_copy"): whole_blocks,
    ("test_tilelang_language_atomic.py", "run_atomic_min_scalar_literal"): above_the_minimum,
}
