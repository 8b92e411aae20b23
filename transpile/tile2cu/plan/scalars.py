"""Statements on single values."""

from tile2cu.core.decisions import ATOMIC_VECTOR
from tile2cu.core.expr import Const, Expr, Load, int_const, substitute
from tile2cu.core.program import Assign, Atomic, Buffer, Declare, Loop, Store
from tile2cu.plan import scalar_ops
from tile2cu.plan.ops import Op
from tile2cu.plan.settled import Settled

Scalar = Assign | Atomic | Declare | Store


def scalar(stmt: Scalar) -> Op:
    """The operation of an assignment or declaration of one value."""
    match stmt:
        case Declare():
            init = Const(stmt.var.dtype, 0) if stmt.init is None else stmt.init
            return scalar_ops.Declare(source=stmt, var=stmt.var, init=init)
        case Assign():
            return scalar_ops.Assign(source=stmt, var=stmt.var, operator=stmt.op, value=stmt.value)
        case Store():
            return scalar_ops.Store(
                source=stmt, buffer=stmt.buffer, indices=stmt.indices, operator=stmt.op, value=stmt.value
            )
        case Atomic():
            return scalar_ops.Atomic(
                source=stmt,
                kind=stmt.kind,
                buffer=stmt.buffer,
                indices=stmt.indices,
                value=stmt.value,
                order=stmt.order,
                previous=stmt.previous,
            )


def atomic_vector(loop: Loop, settled: Settled) -> scalar_ops.AtomicVector:
    """The addition of neighbours that a loop's iterations are: at the indices of the first."""
    (add,) = loop.body
    assert isinstance(add, Atomic) and isinstance(add.value, Load) and isinstance(add.value.buffer, Buffer)

    def first(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(substitute(index, {loop.var: int_const(0)}) for index in indices)

    return scalar_ops.AtomicVector(
        source=loop,
        dst=add.buffer,
        dst_indices=first(add.indices),
        src=add.value.buffer,
        src_indices=first(add.value.indices),
        count=settled.facts[loop, ATOMIC_VECTOR],
    )
