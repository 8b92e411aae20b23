"""What nothing uses is not emitted: a compiler warns of it."""

from tests.conformance.kernels import small_program
from tile2cu.core.program import Declare, Let, Parallel, walk_stmts
from tile2cu.passes.dead_code import without_unused

PARAMS = 'X: T.Tensor((1000,), "float32"), Y: T.Tensor((1000,), "float32"), n: T.int32'
IN_A_LOOP = """
    for i in T.Parallel(128):
        k = bx * 128 + i
        if k < n:
            total = T.alloc_var("float32")
            idle = T.alloc_var("int32")
            total = 0.0
            for j in T.serial(4):
                total += X[(k + j) % 1000]
            least = T.max(k - 3, 0)
            product = least * k
            idle = product
            Y[k] = total / T.cast(least + 1, "float32")
    for i in T.Parallel(128):
        square = i * i
"""


def test_unused_values_of_elements_are_left_out() -> None:
    """With the loop, where it computes nothing else."""
    (before,) = small_program(IN_A_LOOP, PARAMS).launches
    after = without_unused(before)
    names = [stmt.var.name for stmt in walk_stmts(after.body) if isinstance(stmt, Let | Declare)]
    assert [name for name in names if name in ("k", "total", "idle", "least", "product", "square")] == [
        "k",
        "total",
        "least",
    ]
    assert sum(isinstance(stmt, Parallel) for stmt in after.body) == 1
    assert without_unused(after).body is after.body
