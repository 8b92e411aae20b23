"""Which copies of a pipelined loop run ahead: those of tiles that nothing else needs as a turn has left them."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import PIPELINE
from tile2cu.core.program import Loop, LoopKind, walk_stmts

BODY = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((64, 64), "float32")
O = T.alloc_fragment((64, 64), "float32")
place = T.alloc_var("int32", init=0)
for outer in T.serial(2):
    {above}
    for k in T.Pipelined(4, num_stages=2):
        {first}
        T.copy(Z[{at}, 0], A_shared)
        T.copy(Z[0, k * 64], B_shared)
        T.gemm(A_shared, B_shared, S)
        place = place + 1
    {behind}
{below}
T.copy(S, X[0, 0])
"""


def ahead(**parts: str) -> list[str]:
    """The tiles that are loaded ahead."""
    given = {"above": "pass", "first": "pass", "at": "k * 64", "behind": "pass", "below": "pass", **parts}
    context = resolved("\n".join(_filled(line, given) for line in BODY.splitlines()))
    loops = [op for op in walk_stmts(context.launch.body) if isinstance(op, Loop) and op.kind is LoopKind.PIPELINED]
    pipeline = context.facts.get(loops[0], PIPELINE)
    return [tile.name for tile in pipeline.buffers]


def _filled(line: str, given: dict[str, str]) -> str:
    """A line of the body, with lines of a part as deep as it is."""
    indent = line[: len(line) - len(line.lstrip())]
    return line.format(**given).replace("\n", "\n" + indent)


READS = "T.copy(A_shared, O)"
IF_READS = f"if A[bx, 0] > 0:\n    {READS}"
IF_ASKS = "if A_shared[0, 0] > Z[0, 0]:\n    T.clear(O)"
IF_WRITES = "if A[bx, 0] > 0:\n    T.clear(A_shared)"


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"below": f"T.clear(A_shared)\n{READS}"},
        {"below": f"if A[bx, 0] > 0:\n    T.clear(A_shared)\nelse:\n    T.fill(A_shared, 1)\n{READS}"},
        {"above": f"T.clear(A_shared)\n{READS}"},
        {"behind": f"T.clear(A_shared)\n{READS}", "above": READS},
        {"at": "k * 64 + outer"},
    ],
    ids=str,
)
def test_tiles_that_nobody_needs_as_a_turn_left_them_are_loaded_ahead(other: dict[str, str]) -> None:
    assert ahead(**other) == ["A_shared", "B_shared"]


@pytest.mark.parametrize(
    "other",
    [
        {"first": IF_WRITES},  # before the copy, which overwrites it
        {"first": IF_READS},  # what the turn before has loaded
        {"first": f"for i in T.serial(2):\n    {READS}"},
        {"first": IF_ASKS},
        {"below": IF_READS},
        {"below": IF_ASKS},
        {"below": f"{IF_WRITES}\n{READS}"},
        {"below": f"T.clear(A_shared[0:32, :])\n{READS}"},
        {"above": READS},  # in the next turn of the loop around
        {"above": IF_ASKS},
        {"behind": "if A[bx, 0] > 0:\n    continue\nT.clear(A_shared)", "above": READS},
        {"at": "place * 64"},
        {"first": "row = place * 64", "at": "row"},
    ],
    ids=str,
)
def test_other_tiles_are_loaded_in_their_turn(other: dict[str, str]) -> None:
    assert "A_shared" not in ahead(**other)
