"""Loops that change memory in place and write fragments of which several threads hold each element."""

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import ELECTED_WRITERS
from tile2cu.core.program import Copy, Parallel

BODY = """
now = T.alloc_fragment((64,), "float32")
step = T.alloc_fragment((64,), "float32")
wide = T.alloc_fragment((64, 64), "float32")
before = T.alloc_shared((64,), "float32")
T.copy(A[0, 0], wide)
T.reduce_max(wide, now, dim=1)
T.clear(before)
T.clear(step)
for i in T.Parallel(64):
    {stores}
{below}
"""
IN_PLACE = "step[i] = step[i] + now[i] - before[i]\n    before[i] = now[i]"


def loop(stores: str, below: str = "pass") -> tuple[str, list[str]]:
    """Which threads do the loop, and the tiles that copies from or to fragments go through for its sake."""
    context = resolved(BODY.format(stores=stores, below=below))
    op = next(op for op in context.launch.body if isinstance(op, Parallel))
    copies = [op for op in context.launch.body if isinstance(op, Copy)]
    through = [tile.buffer.name for op in copies for tile in (op.src, op.dst) if tile.buffer.name == "step_shared"]
    return context.facts[op, ELECTED_WRITERS], through


def test_one_thread_does_all_of_an_element_that_changes_in_place() -> None:
    read = "T.copy(step, X[0, 0:64])"
    assert loop(IN_PLACE, read) == ("once", ["step_shared", "step_shared"])
    assert loop(IN_PLACE.replace("step[i] + ", ""), read) == ("once", ["step_shared"])  # overwritten: not copied there
    assert loop(IN_PLACE) == ("once", [])  # nothing reads the others' fragments


def test_other_loops_stay_as_they_are() -> None:
    read = "T.copy(step, X[0, 0:64])"
    assert loop("step[i] = now[i] - before[i]", read) == ("all", [])
    assert loop("step[i] = now[i]\n    before[i] = now[i]", read) == ("stores", [])
