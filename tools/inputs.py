"""Data for the cases: what kernels are run on. Each function gives arrays of these shapes, in float64."""

from __future__ import annotations

import numpy as np

import references

Arrays = list[np.ndarray]
Shapes = list[tuple[int, ...]]


def normals(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    return [rng.standard_normal(shape) for shape in shapes]


def small_integers(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """-2 ... 2: a product of thousands of them is exact in float32, though not always in the float16 it ends in."""
    return [rng.integers(-2, 3, shape).astype(np.float64) for shape in shapes]


def scaled(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Two operands, and positive scales of each."""
    return [*normals(rng, shapes[:2]), *(rng.uniform(0.5, 2, shape) for shape in shapes[2:])]


def scaled_integers(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """The same, exact: small integers, and powers of two as scales."""
    return [*small_integers(rng, shapes[:2]), *(2.0 ** rng.integers(-2, 3, shape) for shape in shapes[2:])]


def uniform_scores(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Attention whose scores are all 0, so that each weight is exactly one over the number of keys seen."""
    queries, *others = shapes
    return [np.zeros(queries), *small_integers(rng, others)]


def equal_rows(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Rows of one value each: a softmax of them is exactly one over the row's length."""
    return [np.broadcast_to(rng.integers(-8, 9, (*shape[:-1], 1)), shape).astype(np.float64) for shape in shapes]


def forward_and_gradient(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Of a causal attention: Q, K, V, its output and logarithms, which belong to them, and a gradient."""
    q, k, v, do = normals(rng, [*shapes[:3], shapes[-1]])
    output, lse = references.attention_forward([q, k, v], {"is_causal": True})
    return [q, k, v, output, lse, do]


def falling_sums(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Of Mamba-2: the third is dt, the fourth the running sum of dt * A along each chunk, which falls."""
    first, second, steps, sums, *others = shapes
    dt, falls = rng.uniform(0.1, 0.5, steps), rng.uniform(0, 0.02, sums)
    return [*normals(rng, [first, second]), dt, -np.cumsum(falls, axis=-1), *normals(rng, others)]


def cache(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Queries, caches with (batch, max_len) first, and lengths: 1 and max_len are among them."""
    *tensors, (batch,) = shapes
    return [*normals(rng, tensors), _lengths(rng, batch, tensors[-1][1])]


def paged_cache(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Queries, caches in pages, a table with (batch, max_pages) that names each page once at most, and lengths."""
    *tensors, (batch, max_pages), _ = shapes
    pages, page_size = tensors[-1][:2]
    table = rng.permutation(pages)[: batch * max_pages].reshape(batch, max_pages)
    return [*normals(rng, tensors), table.astype(np.float64), _lengths(rng, batch, max_pages * page_size)]


def grouped(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Rows, a matrix for each group, and where groups start; one of them may be empty."""
    rows, matrices, (starts,) = shapes
    cuts = np.sort(rng.integers(0, rows[0] + 1, starts - 2))
    return [*normals(rng, [rows, matrices]), np.concatenate([[0], cuts, [rows[0]]]).astype(np.float64)]


def four_bits(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Rows, packed weights, their scales, and zeros between 0 and 15."""
    rows, packed, *others = shapes
    found = [rng.standard_normal(rows), rng.integers(0, 256, packed).astype(np.float64)]
    found += [rng.uniform(0.01, 0.1, others[0])]
    return found + [rng.integers(0, 16, shape).astype(np.float64) for shape in others[1:]]


def four_bits_exact(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """The same with small integers in rows and powers of two as scales: sums of 32 products are exact in float16."""
    rows, _, scales, *_ = shapes
    _, packed, _, *zeros = four_bits(rng, shapes)
    return [rng.integers(-2, 3, rows).astype(np.float64), packed, 2.0 ** rng.integers(-2, 2, scales), *zeros]


def two_bits(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Rows of int8, and weights that are 0, 1 or 2, four in a byte."""
    rows, packed = shapes
    weights = rng.integers(0, 3, (*packed, 4)) << np.array([0, 2, 4, 6])
    return [rng.integers(-128, 128, rows).astype(np.float64), weights.sum(axis=-1).astype(np.float64)]


def logits(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Rows of logits, and their labels: some are ignored."""
    rows, (count,) = shapes
    return [3 * rng.standard_normal(rows), rng.integers(-1, rows[1], count).astype(np.float64)]


def block_sparse(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Q, K, V, and a flag for each block of queries and of keys: half of them are kept, of some rows all or none."""
    *tensors, flags = shapes
    kept = rng.integers(0, 2, flags)
    rows = kept.reshape(-1, flags[-1])
    rows[::5], rows[3::5] = 1, 0
    return [*normals(rng, tensors), kept.astype(np.float64)]


def _lengths(rng: np.random.Generator, batch: int, longest: int) -> np.ndarray:
    lengths = rng.integers(1, longest + 1, batch)
    lengths[0], lengths[-1] = 1, longest
    return lengths.astype(np.float64)


def packed(rng: np.random.Generator, shapes: Shapes) -> Arrays:
    """Q, K and V of sequences one after the other, and where each starts; one of them may be empty."""
    q, k, v, starts, _ = shapes
    cuts = [np.sort(rng.integers(0, tokens + 1, starts[0] - 2)) for tokens in (q[0], k[0])]
    ends = [np.concatenate([[0], cut, [shape[0]]]) for cut, shape in zip(cuts, (q, k), strict=True)]
    return [*normals(rng, [q, k, v]), *(end.astype(np.float64) for end in ends)]
