"""Random kernels of the forms that rules and passes look for: each has random types, sizes, threads, statements.

What random programs and random loops reach seldom or never: tiles of 4 bits, clusters, warpgroups that alternate, masks
and running sums of attention, dequantisation, explicit TMA copies and barriers, atomics of tiles, empty tiles, shared
tiles that do not all fit, barriers in divergent branches; nested control flow, pipelines whose copies depend on earlier
iterations, and conversions and arithmetic of all types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from tests.differential.control_forms import control_flow
from tests.differential.element_forms import (
    decoded,
    elements,
    empty_tiles,
    four_bits,
    lifetimes,
    partial_sums,
    rows_and_vectors,
    shared_to_shared,
)
from tests.differential.gemm_forms import (
    attention,
    computed_operands,
    latent,
    loaded_operands,
    online_softmax,
    scalar_gemm,
    small_gemm,
    sparse_blocks,
    two_accumulators,
)
from tests.differential.pipeline_forms import pipelines
from tests.differential.selection_forms import row_scales, selected_loads
from tests.differential.thread_forms import (
    cluster,
    divergent_branches,
    divergent_exits,
    explicit,
    extern,
    private_branches,
    threads,
)
from tests.differential.type_forms import float_types, integer_types, reduced_types
from tests.differential.writer import Writer

NVIDIA = ("cuda:sm_80", "cuda:sm_90a")
ANY = (*NVIDIA, "hip:gfx942")
HOPPER = ("cuda:sm_90a",)
CDNA = ("hip:gfx942", "hip:gfx942", "hip:gfx950")
FORMS: dict[str, tuple[Callable[[Writer], None], tuple[str, ...]]] = {
    "four_bits": (four_bits, ANY),
    "decoded": (decoded, NVIDIA),
    "threads": (threads, ANY),
    "private_branches": (private_branches, ANY),
    "divergent_branches": (divergent_branches, ANY),
    "divergent_exits": (divergent_exits, ANY),
    "extern": (extern, HOPPER),
    "rows_and_vectors": (rows_and_vectors, ANY),
    "shared_to_shared": (shared_to_shared, ANY),
    "empty_tiles": (empty_tiles, ANY),
    "lifetimes": (lifetimes, ANY),
    "partial_sums": (partial_sums, ANY),
    "elements": (elements, ANY),
    "small_gemm": (small_gemm, ("cuda:sm_80", "hip:gfx942")),
    "scalar_gemm": (scalar_gemm, ANY),
    "sparse_blocks": (sparse_blocks, (*HOPPER, *HOPPER, *ANY)),
    "loaded_operands": (loaded_operands, (*HOPPER, *HOPPER, *NVIDIA, *CDNA)),
    "computed_operands": (computed_operands, (*HOPPER, *HOPPER, *HOPPER, *ANY)),
    "selected_loads": (selected_loads, (*HOPPER, *HOPPER, *ANY)),
    "row_scales": (row_scales, (*HOPPER, *HOPPER, *ANY)),
    "two_accumulators": (two_accumulators, HOPPER),
    "attention": (attention, HOPPER),
    "online_softmax": (online_softmax, (*CDNA, *ANY)),
    "latent": (latent, HOPPER),
    "cluster": (cluster, HOPPER),
    "explicit": (explicit, (*HOPPER, *HOPPER, *HOPPER, *ANY)),
}
EXACT: dict[str, tuple[Callable[[Writer], None], tuple[str, ...]]] = {  # results equal the interpreter's bit for bit
    "control_flow": (control_flow, ANY),
    "pipelines": (pipelines, (*HOPPER, *ANY)),
    "integer_types": (integer_types, ANY),
    "float_types": (float_types, ANY),
    "reduced_types": (reduced_types, ANY),
}
FORMS |= EXACT


@dataclass(frozen=True)
class RandomForm:
    """A file with one kernel, its target, and arguments for it; `runs` if the CPU engine can run it, `exact` if results
    are to equal the interpreter's bit for bit.
    """

    text: str
    target: str
    arguments: dict[str, object]
    runs: bool
    exact: bool
    outputs: frozenset[str]


def random_form(name: str, seed: int) -> RandomForm:
    """The kernel of a form and a seed: always the same."""
    write, targets = FORMS[name]
    random = Random(f"{name} {seed}")
    w = Writer(random, np.random.default_rng(random.randrange(2**32)), random.choice(targets))
    write(w)
    return RandomForm(w.text, w.target, w.arguments, w.runs, name in EXACT, frozenset(w.outputs))
