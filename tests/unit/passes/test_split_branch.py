"""Branches that are split at a barrier: values that move out of them get names that nothing else has."""

from tests.unit.passes.launches import launch_of
from tile2cu.analysis.uses import declares, statements
from tile2cu.core.program import If, Store
from tile2cu.passes.split_branch import split_before

KERNEL = """
S = T.alloc_shared((128,), "float32")
row_1 = T.alloc_shared((128,), "float32")
tx = T.get_thread_binding()
row_1[tx] = A[1, tx % 64]
if tx < 40:
    row = Counts[0]
    A[1, tx] = row_1[tx] + row
if tx < 50:
    row = Counts[1]
    S[tx] = A[0, tx]
    B[row, tx] = S[49 - tx] + row_1[tx]
"""


def test_a_value_that_moves_out_of_a_branch_hides_no_tile() -> None:
    launch = launch_of(KERNEL)
    second = [each for each in statements(launch.body, If)][1]
    at = [each for each in statements((second,), Store)][1]
    split = split_before(launch, at)
    assert split is not None
    names = {var.name for stmt in split.statements for var in declares(stmt)}
    assert "row_2" in names
    assert "row_1" not in names
