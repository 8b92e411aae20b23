"""Statements on single values: a variable, an element, an atomic with and without a memory order."""

import pytest

from tests.unit.plan.lowered import statements
from tests.unit.rules.kernels import resolved
from tile2cu.core.expr import Const
from tile2cu.plan import scalar_ops
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.names import Names
from tile2cu.styles.tl.scalars import Scalars


def test_a_variable_without_a_value_starts_at_zero() -> None:
    plan = statements(
        """
count = T.alloc_var("int32")
count += 2
A[bx, 0] = count
"""
    )
    (declared,), (assigned,), (stored,) = map(plan.of, (scalar_ops.Declare, scalar_ops.Assign, scalar_ops.Store))
    assert isinstance(declared, scalar_ops.Declare) and declared.init == Const(declared.var.dtype, 0)
    assert isinstance(assigned, scalar_ops.Assign) and assigned.var is declared.var
    assert isinstance(stored, scalar_ops.Store) and stored.buffer.name == "A"


@pytest.mark.parametrize(
    ("argument", "order", "text"),
    [
        ("", "", "tl::atomic_add(A(bx, 0), 1.0f);"),
        (', memory_order="release"', "release", "tl::atomic_add(A(bx, 0), 1.0f, tl::release);"),
    ],
)
def test_an_atomic_has_the_memory_order_that_it_is_given(argument: str, order: str, text: str) -> None:
    kernel = f"T.atomic_add(A[bx, 0], 1.0{argument})"
    (atomic,) = statements(kernel).of(scalar_ops.Atomic)
    assert atomic.order == order
    assert Scalars(Printer(Names(()), resolved(kernel).bounds))(atomic) == text
