"""A pipeline of one stage by cp.async: loads and the rest of an iteration share a scope."""

import pytest

from tests.conformance.kernels import small_program
from tile2cu.api import emit_program
from tile2cu.targets import find

BODY = """
A_shared = T.alloc_shared((64, 64), "float16")
for k in T.Pipelined(4, num_stages={stages}):
    start = k * 64
    T.copy(H[start, 0], A_shared)
    for i, j in T.Parallel(64, 64):
        Y[start + i, j] = A_shared[i, j] * 2.0
"""
PARAMS = 'H: T.Tensor((256, 64), "float16"), Y: T.Tensor((256, 64), "float32")'


@pytest.mark.parametrize(("stages", "scopes"), [(1, 1), (2, 2)])
def test_a_name_that_loads_and_the_rest_use_is_declared_once_in_a_scope(stages: int, scopes: int) -> None:
    """With more stages the loads are of a later iteration, and stand in a lambda with names of their own."""
    target = find("cuda:sm_80")
    text = emit_program(small_program(BODY.format(stages=stages), PARAMS), target).files["small.cu"]
    assert text.count("const int start = k * 64;") == scopes
