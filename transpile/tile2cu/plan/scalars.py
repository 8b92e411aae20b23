"""Statements on single values."""

from msgspec.structs import replace

from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.sync_calls import START_KERNELS, WAIT_FOR_KERNELS, is_grid_barrier
from tile2cu.core.decisions import ATOMIC_VECTOR, BOUNDS_CHECKED, CLUSTER_CALL
from tile2cu.core.expr import Address, Const, Expr, Load, int_const, substitute, walk
from tile2cu.core.program import Assign, Atomic, BindTensor, Buffer, CallStmt, Declare, Let, Loop, Scope, Stmt, Store
from tile2cu.plan import scalar_ops, structure
from tile2cu.plan.claims import ArrivesAsReader
from tile2cu.plan.ops import Op
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import tensor_view, touched

Scalar = Assign | Atomic | Declare | Store

_KERNELS = {
    WAIT_FOR_KERNELS: structure.Purpose.AWAIT_KERNELS,
    START_KERNELS: structure.Purpose.START_KERNELS,
}


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


def with_values_of(op: Op, stmt: Stmt) -> Op:
    """The operation with the expressions of a statement, which is its own with names for parts of these."""
    match op, stmt:
        case scalar_ops.Store() | scalar_ops.Atomic(), Store() | Atomic():
            return replace(op, source=stmt, indices=stmt.indices, value=stmt.value)
        case scalar_ops.Assign() | structure.Let(), Assign() | Let():
            return replace(op, source=stmt, value=stmt.value)
        case _:
            raise TypeError(f"{type(op).__name__} has no value")


def atomic_vector(loop: Loop, resolved: Resolved) -> scalar_ops.AtomicVector:
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
        count=resolved.facts[loop, ATOMIC_VECTOR],
    )


def let(stmt: Let, resolved: Resolved) -> structure.Let:
    """A named value."""
    loaded = stmt.value.buffer if isinstance(stmt.value, Load) else None
    written = touched(resolved)[1]
    constant = isinstance(loaded, Buffer) and loaded.scope is Scope.GLOBAL and not is_among(loaded, written)
    return structure.Let(source=stmt, var=stmt.var, value=stmt.value, constant=constant)


def locate(stmt: BindTensor, resolved: Resolved) -> structure.BindTensor:
    """A tensor at an address."""
    return structure.BindTensor(
        source=stmt, view=tensor_view(stmt.tensor, resolved), written=stmt.tensor in touched(resolved)[1]
    )


def invoke(stmt: CallStmt, resolved: Resolved) -> structure.Invoke:
    """A call for its effect: where addresses among its arguments may lie outside of tensors, only where they do not."""
    places = tuple(part for part in walk(stmt.call) if isinstance(part, Address) and _may_lie_outside(part, resolved))
    function = resolved.facts.get(stmt, CLUSTER_CALL) or stmt.call.function
    purpose = _purpose(stmt, resolved)
    return structure.Invoke(
        source=stmt,
        claims=(ArrivesAsReader(rule=resolved.facts.rule(stmt, CLUSTER_CALL)),)
        if purpose is structure.Purpose.ARRIVE_AS_READER
        else (),
        call=replace(stmt.call, function=function),
        places=places,
        fills=bool(places) and stmt.call.function.startswith("cp_async<"),
        purpose=purpose,
    )


def _purpose(stmt: CallStmt, resolved: Resolved) -> structure.Purpose:
    if is_grid_barrier(stmt):
        return structure.Purpose.GRID_BARRIER
    if stmt.call.function in _KERNELS:
        return _KERNELS[stmt.call.function]
    in_cluster = resolved.facts.get(stmt, CLUSTER_CALL) is not None
    if in_cluster and stmt.call.function != "mbarrier_wait_cluster":
        return structure.Purpose.ARRIVE_AS_READER
    return structure.Purpose.OTHER


def _may_lie_outside(place: Address, resolved: Resolved) -> bool:
    assert isinstance(place.buffer, Buffer)
    return place.buffer.scope is Scope.GLOBAL and any(resolved.facts[place.buffer, BOUNDS_CHECKED])
