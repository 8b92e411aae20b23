"""Shared tiles with disjoint lifetimes share memory, however many of them there are."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import ALIASING

_EACH = """
S{0} = T.alloc_shared((256, 128), "float32")
T.copy(X[{0}, 0], S{0})
for i, j in T.Parallel(256, 128):
    F[i, j] = F[i, j] * 0.5 + S{0}[255 - i, j]
"""


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7])
def test_each_of_several_large_tiles_has_the_same_memory(count: int) -> None:
    """With four, neither of the cuts behind the first makes the larger part smaller: only both together do."""
    head = 'F = T.alloc_fragment((256, 128), "float32")\nT.clear(F)\n'
    context = resolved(head + "".join(map(_EACH.format, range(count))), threads=256)
    aliasing = context.facts[context.launch, ALIASING]
    assert [part.tiles for part in aliasing.parts] == [(f"S{at}",) for at in range(count)]
