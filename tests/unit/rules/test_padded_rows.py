"""Which tiles have padded rows, as lanes go along a row each."""

import pytest

from tests.unit.rules.kernels import resolved, subject
from tile2cu.core.decisions import SHARED_LAYOUT

_SUMS = """
S = T.alloc_shared(({rows}, 128), "float32")
sums = T.alloc_fragment(({rows},), "float32")
T.copy(X[0, 0], S)
for i in T.Parallel({rows}):
    for j in T.serial(128):
        sums[i] = sums[i] + S[i, j]
"""


@pytest.mark.parametrize(("rows", "padding"), [(64, 16), (232, 16), (256, 0), (320, 0)])
def test_rows_are_padded_where_three_quarters_of_shared_memory_hold_them(rows: int, padding: int) -> None:
    """320 rows fit into what sm_80 has, 166,912 bytes, without padding only."""
    context = resolved(_SUMS.format(rows=rows), threads=rows)
    assert context.facts[subject(context, "S"), SHARED_LAYOUT].padding == padding
