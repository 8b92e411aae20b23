"""Where the PTX machine takes the elements of mma's operands from: as the manual's tables say.

test_cute.py compares these tables with CuTe's.
"""

from __future__ import annotations

import numpy as np
import pytest
from test_layouts import (
    Table,
    a_m16k8_tf32,
    a_m16k16,
    a_m16k32_int8,
    b_k8n8_tf32,
    b_k16n8,
    b_k32n8_int8,
    c_m16n8,
)

from tile2cu_runtime.ptx.warp import Fragment, operand_a, operand_b, result


@pytest.mark.parametrize(
    ("fragment", "table", "items"),
    [
        (operand_a(16, 16), a_m16k16, 8),
        (operand_b(16, 16), b_k16n8, 4),
        (operand_a(8, 32), a_m16k8_tf32, 4),
        (operand_b(8, 32), b_k8n8_tf32, 2),
        (operand_a(32, 8), a_m16k32_int8, 16),
        (operand_b(32, 8), b_k32n8_int8, 8),
        (result(), c_m16n8, 4),
    ],
)
def test_fragments_are_the_manuals(fragment: Fragment, table: Table, items: int) -> None:
    assert fragment.row.shape == fragment.column.shape == (32, items)
    for lane, item in np.ndindex(32, items):
        assert (fragment.row[lane, item], fragment.column[lane, item]) == table(lane, item), (lane, item)
