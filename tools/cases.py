"""What the emitted kernels must give on a GPU: sizes to try, data, and a NumPy reference in float64.

The small-integer data is chosen so that no rounding happens before the last step: there a GPU, a CPU and NumPy must
agree in every bit. The random data must agree within the rounding of the output's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Arrays = list[np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A family of kernels with the same meaning.

    `sizes`: values to try for sizes the text takes at run time, by the names it may use. `reference` gets the inputs,
    as float64, and the manifest's bindings; it gives the output. `integers` makes inputs whose result is exact.
    """

    sizes: tuple[Mapping[str, int], ...]
    reference: Callable[[Arrays, Mapping[str, object]], np.ndarray]
    integers: Callable[[np.random.Generator, list[tuple[int, ...]]], Arrays]
    tolerance: float


def small_integers(rng: np.random.Generator, shapes: list[tuple[int, ...]]) -> Arrays:
    """-2 ... 2: a product of thousands of them is exact in float32, though not always in the float16 it ends in."""
    return [rng.integers(-2, 3, shape).astype(np.float64) for shape in shapes]


def uniform_scores(rng: np.random.Generator, shapes: list[tuple[int, ...]]) -> Arrays:
    """Attention whose scores are all 0, so that each weight is exactly one over the number of keys seen."""
    queries, *others = shapes
    return [np.zeros(queries), *small_integers(rng, others)]


def equal_rows(rng: np.random.Generator, shapes: list[tuple[int, ...]]) -> Arrays:
    """Rows of one value each: a softmax of them is exactly one over the row's length."""
    return [np.broadcast_to(rng.integers(-8, 9, (*shape[:-1], 1)), shape).astype(np.float64) for shape in shapes]


def vector_add(inputs: Arrays, bindings: Mapping[str, object]) -> np.ndarray:
    return inputs[0] + inputs[1]


def softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def row_softmax(inputs: Arrays, bindings: Mapping[str, object]) -> np.ndarray:
    return softmax(inputs[0])


def gemm_relu(inputs: Arrays, bindings: Mapping[str, object]) -> np.ndarray:
    return np.maximum(inputs[0] @ inputs[1], 0)


def attention(inputs: Arrays, bindings: Mapping[str, object]) -> np.ndarray:
    """Shapes: (batch, sequence, heads, dim), all three inputs and the output."""
    queries, keys, values = (x.transpose(0, 2, 1, 3) for x in inputs)
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])
    if is_causal(bindings):
        scores = np.where(np.tril(np.ones(scores.shape[-2:], dtype=bool)), scores, -np.inf)
    return (softmax(scores) @ values).transpose(0, 2, 1, 3)


def is_causal(bindings: Mapping[str, object]) -> bool:
    return bool(bindings.get("is_causal", bindings.get("causal", False)))


GEMM_SIZES = (
    {"M": 256, "N": 256, "K": 128},
    {"M": 253, "N": 187, "K": 101},
    {"M": 1, "N": 8, "K": 1},
    {"M": 129, "N": 384, "K": 0},
)
CASES = {
    "vector_add": Case(
        sizes=({"N": 1024}, {"N": 1}, {"N": 100_003}, {"N": 0}),
        reference=vector_add,
        integers=small_integers,
        tolerance=1e-6,
    ),
    "row_softmax": Case(
        sizes=({"M": 64, "N": 1000}, {"M": 7, "N": 1000}, {"M": 0, "N": 1000}),
        reference=row_softmax,
        integers=equal_rows,
        tolerance=1e-5,
    ),
    "gemm_relu": Case(sizes=GEMM_SIZES, reference=gemm_relu, integers=small_integers, tolerance=2e-3),
    "attention": Case(
        sizes=(
            {"batch": 2, "seq_len": 256, "heads": 4},
            {"batch": 1, "seq_len": 173, "heads": 2},
            {"batch": 1, "seq_len": 1, "heads": 1},
        ),
        reference=attention,
        integers=uniform_scores,
        tolerance=4e-3,
    ),
}


def case_of(kernel: str) -> Case | None:
    """The case whose name the kernel's name contains."""
    return next((case for name, case in CASES.items() if name in kernel), None)
