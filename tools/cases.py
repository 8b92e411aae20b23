"""What the emitted kernels must give: sizes to try, data, and a NumPy reference in float64 (references.py).

The small-integer data is chosen so that no rounding happens before the last step: there a GPU, a CPU and NumPy must
agree in every bit; kernels that always round on their way have none. The random data must agree within the rounding of
the output's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

import inputs
import references

Arrays = list[np.ndarray]
Make = Callable[[np.random.Generator, list[tuple[int, ...]]], Arrays]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A family of kernels with the same meaning.

    `sizes`: values to try for sizes the text takes at run time, by the names it may use. `reference`
    gets the inputs, as float64, and the manifest's bindings; it gives the output, or all outputs. `integers` makes
    inputs whose result is exact, `random` any others; both get the inputs' shapes.
    """

    sizes: tuple[Mapping[str, int], ...]
    reference: Callable[[Arrays, Mapping[str, object]], np.ndarray | Arrays]
    integers: Make | None = None
    random: Make = inputs.normals
    tolerance: float


GEMM_SIZES = (
    {"M": 256, "N": 256, "K": 128},
    {"M": 253, "N": 187, "K": 101},
    {"M": 1, "N": 8, "K": 1},
    {"M": 129, "N": 384, "K": 0},
)
ATTENTION_SIZES = (
    {"batch": 2, "seq_len": 200, "heads": 4},
    {"batch": 1, "seq_len": 173, "heads": 4},
    {"batch": 1, "seq_len": 1, "heads": 4},
)
CASES = {
    "vector_add": Case(
        sizes=({"N": 1024}, {"N": 1}, {"N": 100_003}, {"N": 0}),
        reference=references.vector_add,
        integers=inputs.small_integers,
        tolerance=1e-6,
    ),
    "row_softmax": Case(
        sizes=({"M": 64, "N": 1000}, {"M": 7, "N": 1000}, {"M": 0, "N": 1000}),
        reference=references.row_softmax,
        integers=inputs.equal_rows,
        tolerance=1e-5,
    ),
    "gemm_relu": Case(sizes=GEMM_SIZES, reference=references.gemm_relu, integers=inputs.small_integers, tolerance=2e-3),
    "attention": Case(
        sizes=ATTENTION_SIZES, reference=references.attention, integers=inputs.uniform_scores, tolerance=4e-3
    ),
    "attention_forward": Case(sizes=ATTENTION_SIZES, reference=references.attention_forward, tolerance=4e-3),
    "attention_backward": Case(
        sizes=({"batch": 2, "seq_len": 173, "heads": 2}, {"batch": 1, "seq_len": 3, "heads": 4}),
        reference=references.attention_backward,
        random=inputs.forward_and_gradient,
        tolerance=4e-3,
    ),
    "attention_varlen": Case(
        sizes=(
            {"batch": 4, "tokens": 300, "tokens_k": 300, "heads": 4, "max_seqlen": 300},
            {"batch": 3, "tokens": 5, "tokens_k": 400, "heads": 8, "max_seqlen": 5},
        ),
        reference=references.attention_varlen,
        random=inputs.packed,
        tolerance=4e-3,
    ),
    "flash_decoding": Case(
        sizes=({"batch": 3, "kv_heads": 2, "max_len": 700}, {"batch": 1, "kv_heads": 1, "max_len": 1}),
        reference=references.flash_decoding,
        random=inputs.cache,
        tolerance=4e-3,
    ),
    "mla_decode": Case(
        sizes=(
            {"batch": 2, "heads": 128, "max_len": 200, "pages": 9, "max_pages": 3},
            {"batch": 1, "heads": 16, "max_len": 33, "pages": 1, "max_pages": 1},
        ),
        reference=references.mla_decode,
        random=inputs.cache,
        tolerance=4e-3,
    ),
}


def case_of(kernel: str) -> Case | None:
    """The case with the longest name that the kernel's name contains."""
    found = max((name for name in CASES if name in kernel), key=len, default="")
    return CASES.get(found)
