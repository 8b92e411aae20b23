"""Which loads of a pipelined product the blocks of a cluster share, and what arrivals at others' barriers order."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import CLUSTER_CALL, MULTICAST_MASK
from tile2cu.core.program import CallStmt, Copy
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
    return [op.dst.buffer.name for op in copies if context.facts.get(op, MULTICAST_MASK) is not None]


def of(cluster: int = 2, target: str = "cuda:sm_90a", **words: str) -> list[str]:
    return shared(resolved(PRODUCT.format(**{**PLAIN, **words}), target=target, cluster=cluster))


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


HANDED = """
A_shared = T.alloc_shared((64, 64), "float16")
number = T.alloc_shared((1,), "int32")
there = T.alloc_cluster_barrier(128)
T.copy(Z[0, bx * 64], A_shared)
{handed}
T.mbarrier_arrive(there, 1)
T.mbarrier_wait_parity(there, 0)
T.copy(A_shared, Y[0, bx * 64])
"""


def functions(handed: str) -> list[str]:
    """What arrives at the other block's barrier, and what waits for it."""
    context = resolved(HANDED.format(handed=handed), target="cuda:sm_90a", cluster=2)
    calls = [op for op in context.statements if isinstance(op, CallStmt) and op.call.function.startswith("mbarrier_")]
    return [context.facts.get(op, CLUSTER_CALL) or op.call.function for op in calls]


def test_who_only_read_arrives_as_a_reader() -> None:
    assert functions("") == functions("number[0] = 3") == ["mbarrier_arrive_as_reader", "mbarrier_wait"]


@pytest.mark.parametrize(
    "handed",
    [
        "T.copy_cluster(A_shared, A_shared, dst_block=1)",
        "Y[0, 0] = Y[0, 1]",
        "Z[0, bx] = 1",
        "T.atomic_add(X[0, 0], 1)",
        "T.import_source('__device__ void show(__half* to);')\n"
        'T.call_extern("handle", "show", T.access_ptr(A_shared[0, 0], "w"))',
    ],
    ids=str,
)
def test_who_may_have_written_for_others_does_not(handed: str) -> None:
    """To the other block's tile, to a tensor that the kernel also reads, or nobody knows where."""
    assert functions(handed) == ["mbarrier_arrive", "mbarrier_wait_cluster"]
