"""What a producer needs before its loop: variables that are assigned to come along, or there is no producer."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.analysis.prelude import before, loaded_by, prelude
from tile2cu.core.decisions import WARP_SPECIALISED
from tile2cu.core.program import Loop, LoopKind

KERNEL = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
row = T.alloc_var("int32", init=bx)
{above}
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[row * 64, k * 64], A_shared)
    T.copy(Z[k * 64, 0], B_shared)
    T.gemm(A_shared, B_shared, C_local)
T.copy(C_local, Z[0, 0])
"""


@pytest.mark.parametrize(
    ("above", "moved", "specialised"),
    [
        ("T.clear(C_local)", 1, True),
        ("row += 1\nT.clear(C_local)", 2, True),
        ("for i in T.serial(3):\n    if bx > i:\n        row = row + i\nT.clear(C_local)", 2, True),
        ("other = T.alloc_var('int32', init=0)\nother += row\nT.fill(C_local, other)", 1, True),
        ("T.fill(C_local, row)\nrow += 1", 2, False),
        ("T.clear(C_local)\nT.copy(C_local, Z[0, 0])", 1, False),
        ("T.clear(C_local)\nif bx > 3:\n    row += 1\n    T.fill(C_local, 1)", 2, False),
    ],
    ids=["as it is", "assigned", "in a loop", "read by others", "read before", "loaded after", "among tiles"],
)
def test_variables_that_loads_need(above: str, moved: int, specialised: bool) -> None:
    context = resolved(KERNEL.format(above=above), target="cuda:sm_90a")
    body = context.launch.body
    loop = next(op for op in body if isinstance(op, Loop) and op.kind is LoopKind.PIPELINED)
    assert len(prelude(loaded_by(loop, loop.body), before(body, loop))) == moved
    assert context.facts[context.launch, WARP_SPECIALISED].producer is specialised
