"""What the emitted kernels must give: sizes to try, data, and a NumPy reference in float64 (references.py).

The small-integer data is chosen so that no rounding happens before the last step: there a GPU, a CPU and NumPy must
agree in every bit; kernels that always round on their way have none. The random data must agree within the rounding of
the output's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

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
LINEAR_SIZES = (
    {"M": 130, "N": 72, "K": 96},
    {"M": 33, "N": 187, "K": 101},
    {"M": 1, "N": 8, "K": 8},
)
ROW_SIZES = ({"M": 13}, {"M": 1}, {"M": 0})
ATTENTION_SIZES = (
    {"batch": 2, "seq_len": 200, "heads": 4},
    {"batch": 1, "seq_len": 173, "heads": 4},
    {"batch": 1, "seq_len": 1, "heads": 4},
)
MAMBA_SIZES = (
    {"batch": 1, "seqlen": 512, "heads": 2},
    {"batch": 2, "seqlen": 200, "heads": 1},
)
TERNARY = Case(
    sizes=({"M": 3, "N": 72, "K": 2064}, {"M": 1, "N": 5, "K": 4}, {"M": 67, "N": 72, "K": 2112}),  # TMA asks for 64
    reference=references.w2a8,
    integers=inputs.two_bits,
    random=inputs.two_bits,
    tolerance=0,
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
    "attention_block_sparse": Case(
        sizes=ATTENTION_SIZES, reference=references.attention_block_sparse, random=inputs.block_sparse, tolerance=4e-3
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
        sizes=(
            {"batch": 3, "kv_heads": 2, "group": 5, "max_len": 700},
            {"batch": 1, "kv_heads": 1, "group": 1, "max_len": 1},
        ),
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
    "linear_attention": Case(
        sizes=(
            {"batch": 2, "seq_len": 200, "heads": 2, "dim_v": 64},
            {"batch": 1, "seq_len": 5, "heads": 1, "dim_v": 72},
        ),
        reference=references.linear_attention,
        tolerance=4e-3,
    ),
    "chunk_state": Case(
        sizes=MAMBA_SIZES, reference=references.chunk_state, random=inputs.falling_sums, tolerance=2e-3
    ),
    "chunk_scan": Case(sizes=MAMBA_SIZES, reference=references.chunk_scan, random=inputs.falling_sums, tolerance=4e-3),
    "linear": Case(sizes=LINEAR_SIZES, reference=references.linear, integers=inputs.small_integers, tolerance=2e-3),
    "linear_residual": Case(
        sizes=LINEAR_SIZES, reference=references.linear, integers=inputs.small_integers, tolerance=2e-3
    ),
    "linear_int4": Case(
        sizes=({"M": 70, "N": 72, "K": 320}, {"M": 1, "N": 5, "K": 32}),
        reference=references.linear_int4,
        random=inputs.four_bits,
        tolerance=2e-3,
    ),
    "gemm": Case(sizes=GEMM_SIZES, reference=references.gemm, tolerance=4e-3),
    "gemm_fp8_scaled": Case(  # TMA asks for K in sixteens; an ulp of bfloat16 is 2^-7
        sizes=({"M": 150, "N": 328, "K": 304}, {"M": 1, "N": 8, "K": 16}, {"M": 129, "N": 384, "K": 0}),
        reference=references.scaled_product,
        integers=inputs.scaled_integers,
        random=inputs.scaled,
        tolerance=8e-3,
    ),
    "gemm_batched": Case(
        sizes=tuple({"batch": 3, **sizes} for sizes in GEMM_SIZES[:3]),
        reference=references.product,
        integers=inputs.small_integers,
        tolerance=2e-3,
    ),
    "gemm_grouped": Case(
        sizes=(
            {"tokens": 300, "groups": 5, "N": 200, "K": 104},
            {"tokens": 1, "groups": 2, "N": 8, "K": 8},
        ),
        reference=references.gemm_grouped,
        random=inputs.grouped,
        tolerance=2e-3,
    ),
    "gemm_persistent": Case(
        sizes=GEMM_SIZES, reference=references.gemm_relu, integers=inputs.small_integers, tolerance=2e-3
    ),
    "gemm_hybrid": Case(  # the last size: two tiles, each in parts for 66 blocks
        sizes=(*GEMM_SIZES, {"M": 130, "N": 200, "K": 4224}),
        reference=references.gemm_relu,
        integers=inputs.small_integers,
        tolerance=2e-3,
    ),
    "gemm_splitk": Case(
        sizes=({"M": 130, "N": 136, "K": 1000}, {"M": 1, "N": 8, "K": 1}),
        reference=references.product,
        integers=inputs.small_integers,
        tolerance=2e-3,
    ),
    "gemm_few_rows": Case(
        sizes=({"M": 16, "N": 256, "K": 512}, {"M": 5, "N": 187, "K": 1001}, {"M": 1, "N": 8, "K": 1}, GEMM_SIZES[-1]),
        reference=references.gemm_relu,
        integers=inputs.small_integers,
        tolerance=2e-3,
    ),
    "gemm_clusters": Case(
        sizes=({"M": 136, "N": 264, "K": 1000}, {"M": 5, "N": 8, "K": 8}, {"M": 64, "N": 64, "K": 0}),
        reference=references.gemm_relu,
        integers=inputs.small_integers,
        tolerance=2e-3,
    ),
    "gemm_streamk": Case(
        sizes=({"M": 257, "N": 136, "K": 1000}, {"M": 1, "N": 8, "K": 1}),
        reference=references.product,
        integers=inputs.small_integers,
        tolerance=2e-3,
    ),
    "linear_int4_prefill": Case(
        sizes=({"M": 70, "N": 72, "K": 320}, {"M": 1, "N": 5, "K": 32}, {"M": 300, "N": 130, "K": 96}),
        reference=references.linear_int4,
        random=inputs.four_bits,
        tolerance=2e-3,
    ),
    "dequant_gemm": Case(
        sizes=({"M": 70, "N": 72, "K": 320}, {"M": 1, "N": 5, "K": 32}),
        reference=references.dequant,
        random=inputs.four_bits,
        tolerance=2e-3,
    ),
    "dequant_gemv": Case(  # sums 32 products in halves, of which one result may be a small difference
        sizes=({"M": 2, "N": 37, "K": 1312}, {"M": 1, "N": 1, "K": 32}),
        reference=references.dequant,
        integers=inputs.four_bits_exact,
        random=inputs.four_bits,
        tolerance=8e-3,
    ),
    "w2a8_gemm": TERNARY,
    "w2a8_gemv": replace(TERNARY, sizes=TERNARY.sizes[:2]),
    "layernorm": Case(sizes=ROW_SIZES, reference=references.layernorm, tolerance=2e-3),
    "rmsnorm": Case(sizes=ROW_SIZES, reference=references.rmsnorm, tolerance=2e-3),
    "rope": Case(
        sizes=({"batch": 2, "seq_len": 77, "heads": 3}, {"batch": 1, "seq_len": 1, "heads": 1}),
        reference=references.rope,
        tolerance=2e-3,
    ),
    "rmsnorm_silu": Case(sizes=ROW_SIZES, reference=references.rmsnorm_silu, tolerance=2e-3),
    "reduce_rows": Case(
        sizes=({"M": 13, "N": 3001}, {"M": 1, "N": 1}, {"M": 2, "N": 0}),
        reference=references.reduce_rows,
        integers=inputs.small_integers,
        tolerance=1e-5,
    ),
    "cross_entropy": Case(
        sizes=({"M": 9, "vocab": 5003}, {"M": 3, "vocab": 7}),
        reference=references.cross_entropy,
        random=inputs.logits,
        tolerance=2e-3,
    ),
}


def case_of(kernel: str) -> Case | None:
    """The case with the longest name that the kernel's name contains."""
    found = max((name for name in CASES if name in kernel), key=len, default="")
    return CASES.get(found)
