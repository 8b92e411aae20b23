"""Variables that are only written go, with their assignments; what else a value does stays."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.program import Assign, Declare


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ("n += 1", 0),
        ("n = m + 2", 0),
        ("n += 1\nX[bx, 0] = n", 2),
        ("n = n * 2", 2),
        ("n = T.shfl_xor(bx, 1)", 2),
    ],
    ids=["counted", "given", "read", "of itself", "among threads"],
)
def test_variables_that_nothing_reads(change: str, kept: int) -> None:
    context = resolved(f"n = T.alloc_var('int32')\n{change}\nX[bx, 1] = 0.0")
    assert sum(isinstance(stmt, Declare | Assign) for stmt in context.statements) == kept
