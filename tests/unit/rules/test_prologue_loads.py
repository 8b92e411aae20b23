"""Which tiles a producer loads before its turns, and who waits for them."""

from __future__ import annotations

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import PROLOGUE_LOADS

BODY = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
F_shared = T.alloc_shared((64, 64), "float16")
G_shared = T.alloc_shared((64, 64), "float16")
first = T.alloc_fragment((64, 64), "float32")
C_local = T.alloc_fragment((64, 64), "float32")
{above}
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[0, k * 64], A_shared)
    T.copy(Z[k * 64, 0], B_shared)
    T.gemm(A_shared, B_shared, C_local)
    {turn}
T.copy(C_local, X[0, 0])
{below}
"""
LOADS = "T.copy(Z[bx * 64, 0], F_shared)\nT.copy(Z[0, bx * 64], G_shared)\n"
PRODUCT = "T.gemm(F_shared, G_shared, C_local, clear_accum=True)"


def first_tiles(above: str, turn: str = "", below: str = "", target: str = "cuda:sm_90a") -> tuple[str, str]:
    """The tiles, and the kind of statement that waits for them; empty where there are none."""
    context = resolved(BODY.format(above=above, turn=turn, below=below), target=target)
    found = context.facts.get(context.launch, PROLOGUE_LOADS)
    return (str(found), type(found.reader).__name__) if found is not None else ("", "")


def test_what_a_product_reads_before_the_loop() -> None:
    assert first_tiles(LOADS + PRODUCT) == ("F_shared, G_shared", "Gemm")
    assert first_tiles(LOADS + PRODUCT, target="cuda:sm_100a") == ("F_shared, G_shared", "Gemm")
    assert first_tiles(LOADS + PRODUCT, target="cuda:sm_80") == ("", "")


def test_what_the_turns_read() -> None:
    assert first_tiles(LOADS, turn="T.gemm(F_shared, G_shared, C_local)") == ("F_shared, G_shared", "Loop")


def test_what_is_loaded_after_the_first_reader_is_loaded_there() -> None:
    above = "T.copy(Z[0, 0], F_shared)\nT.gemm(F_shared, F_shared, C_local)\nT.copy(Z[0, 0], G_shared)"
    assert first_tiles(above, turn="T.gemm(G_shared, G_shared, C_local)") == ("F_shared", "Gemm")


REFUSED = {
    "written twice": (LOADS + PRODUCT, "T.copy(Z[0, 0], F_shared)", "T.copy(Z[0, 0], G_shared)"),
    "a part of a tile": ("T.copy(Z[0:32, 0:64], F_shared[0:32, :])\nT.gemm(F_shared, F_shared, C_local)", "", ""),
    "another type": ("T.copy(X[0, 0], F_shared)\nT.gemm(F_shared, F_shared, C_local)", "", ""),
    "rows of a run-time size": ("T.copy(Y[0, 0], F_shared)\nT.gemm(F_shared, F_shared, C_local)", "", ""),
    "the kernel writes the tensor": (LOADS + PRODUCT, "", "T.copy(C_local, Z[0, 0])"),
    "in a branch": ("if bx > 3:\n    T.copy(Z[0, 0], F_shared)\nT.gemm(F_shared, F_shared, C_local)", "", ""),
    "at a place that a tile decides": (
        "place = T.alloc_shared((4,), 'int32')\nplace[0] = bx\nT.copy(Z[place[0], 0], F_shared)\n"
        "T.gemm(F_shared, F_shared, C_local)",
        "",
        "",
    ),
}


@pytest.mark.parametrize(("above", "turn", "below"), REFUSED.values(), ids=REFUSED.keys())
def test_what_all_threads_copy(above: str, turn: str, below: str) -> None:
    assert first_tiles(above, turn, below) == ("", "")
