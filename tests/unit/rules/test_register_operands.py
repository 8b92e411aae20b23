"""Which operand of a product stays in registers while a loop's turns overlap."""

from __future__ import annotations

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import REGISTER_OPERAND
from tile2cu.core.program import Copy, Gemm, Scope

BODY = """
Q_shared = T.alloc_shared(({rows}, 128), "float16")
K_shared = T.alloc_shared(({keys}, 128), "float16")
V_shared = T.alloc_shared(({keys}, 128), "float16")
S = T.alloc_fragment(({rows}, {keys}), "float32")
P = T.alloc_fragment(({rows}, {keys}), "float16")
O = T.alloc_fragment(({rows}, 128), "float32")
{above}
for k in T.Pipelined(4, num_stages=1):
    T.copy(Z[k * {keys}, 0], K_shared)
    T.copy(Z[k * {keys}, 128], V_shared)
    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
    T.copy(S, P)
    T.gemm(P, V_shared, O)
{below}
T.copy(O, X[bx * {rows}, 0])
"""
LOAD = "T.copy(Z[bx * {rows}, 0], Q_shared)\nT.clear(O)"


def operand(above: str = LOAD, below: str = "", rows: int = 128, keys: int = 128, target: str = "cuda:sm_90a") -> str:
    """The first operand of the first product in the loop, and whether it is a copy of Q_shared."""
    text = BODY.format(above=above.format(rows=rows), below=below, rows=rows, keys=keys)
    context = resolved(text, threads=2 * rows, target=target)
    product = next(op for op in context.statements if isinstance(op, Gemm))
    tile = product.a.buffer
    if tile.scope is Scope.FRAGMENT:
        copied = [op.src.buffer.name for op in context.launch.body if isinstance(op, Copy) and op.dst.buffer is tile]
        assert copied == ["Q_shared"], "it is filled once, before the loop"
        assert context.facts[product, REGISTER_OPERAND] == "Q_shared"
    return tile.name


def test_an_operand_that_no_turn_changes_is_read_once() -> None:
    assert operand() == "Q_local"
    assert operand(rows=64) == "Q_local"
    assert operand(target="cuda:sm_80", keys=32, rows=64) == "Q_shared"


@pytest.mark.parametrize(("keys", "wanted"), [(128, "Q_local"), (144, "Q_local"), (176, "Q_shared")])
def test_its_registers_have_to_fit(keys: int, wanted: str) -> None:
    assert operand(keys=keys) == wanted


def test_two_blocks_side_by_side_are_worth_more() -> None:
    assert operand(rows=64, keys=64) == "Q_local"
    assert operand(rows=64, keys=80) == "Q_shared"


REFUSED = {
    "it is read elsewhere": {"below": "T.copy(Q_shared, X[0, 0])"},
    "it is not loaded by the producer": {"above": "T.fill(Q_shared, 1)\nT.clear(O)"},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_stays_in_shared_memory(case: str) -> None:
    assert operand(**REFUSED[case]) == "Q_shared"  # type: ignore[arg-type]
