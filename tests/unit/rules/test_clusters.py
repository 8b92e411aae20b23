"""Which loads of a pipelined product the blocks of a cluster share."""

import pytest

from tests.unit.rules.kernels import settled
from tile2cu.core.program import Copy
from tile2cu.rules import Context

PRODUCT = """
{before}
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.clear(C_local)
for k in T.Pipelined({turns}, num_stages=3):
    T.copy(Z[{row}, k * 64], A_shared)
    T.copy(Z[k * 64, bx * 64], B_shared)
    T.gemm(A_shared, B_shared, C_local)
T.copy(C_local, Y[0, bx * 64])
"""
PLAIN = {"before": "", "turns": "64", "row": "0"}


def shared(context: Context) -> list[str]:
    """The tiles that the first block of a cluster loads for all."""
    copies = (op for op in context.statements if isinstance(op, Copy))
    return [op.dst.buffer.name for op in copies if context.facts.get(op, "for_blocks") is not None]


def of(cluster: int = 2, target: str = "cuda:sm_90a", **words: str) -> list[str]:
    return shared(settled(PRODUCT.format(**{**PLAIN, **words}), target=target, cluster=cluster))


def test_what_all_blocks_load_alike_is_shared() -> None:
    assert of() == of(cluster=4) == ["A_shared"]
    assert of(before="first = 3 * 64", row="first") == ["A_shared"]
    assert of(before="T.use_swizzle(8)") == ["A_shared"], "an order of whole clusters"
    assert of(cluster=1) == []


@pytest.mark.parametrize(
    "words",
    [
        {"row": "bx * 64"},
        {"before": "first = bx * 64", "row": "first"},
        {"before": "first = bx // 2 * 64 + 64", "row": "first"},
        {"turns": "bx + 1"},
        {"before": "first = T.alloc_var('int32', 0)", "row": "first"},
    ],
    ids=str,
)
def test_what_may_differ_is_not(words: dict[str, str]) -> None:
    assert of(**words) == []
