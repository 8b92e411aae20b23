"""Loops over a slice of a fragment that does not begin at its first element."""

from msgspec.structs import replace

from tile2cu.analysis.accesses import Access, element_accesses
from tile2cu.analysis.linear import rest_of_sum
from tile2cu.analysis.uses import statements
from tile2cu.core.expr import (
    Expr,
    Load,
    Var,
    binary,
    is_of_thread,
    joined,
    static_value,
    walk,
    walk_evaluated,
)
from tile2cu.core.program import Atomic, If, Parallel, Scope, Stmt, Store
from tile2cu.core.rebuild import Body, with_expressions


def shifted(op: Parallel) -> Body | None:
    """A loop that reads a fragment at its own index plus an offset runs over all of the fragment, under a condition.

    So each thread moves elements that it holds: `S[i, j] = F[i + at, j]` becomes `S[i - at, j] = F[i, j]` where `at <=
    i < at + n`. Each of the loop's iterations runs once, except undefined ones that read only out of bounds: each
    statement of the loop stores an element that it reads of the fragment under no condition of its own.
    """
    accesses = [access for access in element_accesses(op.body) if access.buffer.scope is Scope.FRAGMENT]
    if not accesses or any(access.is_store or access.buffer is not accesses[0].buffer for access in accesses):
        return None
    offsets = _offsets(op, accesses[0])
    same = all(access.indices == accesses[0].indices for access in accesses)
    if (
        offsets is None
        or not same
        or not all(isinstance(stmt, If) or _reads(stmt, accesses[0]) for stmt in statements(op.body, Stmt))
    ):
        return None
    shape = accesses[0].buffer.shape
    conditions: list[Expr] = []
    for var, offset, extent, full in zip(op.vars, offsets, op.extents, shape, strict=True):
        if static_value(offset) != 0:
            conditions.append(binary(">=", var, offset))
        if static_value(offset) != 0 or static_value(extent) != static_value(full):
            conditions.append(binary("<", var, binary("+", offset, extent)))
    positions = {var: binary("-", var, offset) for var, offset in zip(op.vars, offsets, strict=True)}

    def moved(expr: Expr) -> Expr | None:
        if isinstance(expr, Load) and expr.buffer is accesses[0].buffer:
            return replace(expr, indices=op.vars)
        return positions.get(expr) if isinstance(expr, Var) else None

    condition = joined("and", conditions)
    assert condition is not None
    about = f"Over all of {accesses[0].buffer.name}, so that each thread stores its own elements"
    inside = If(condition=condition, then=with_expressions(op.body, moved), span=op.span)
    return (replace(op, extents=shape, body=(inside,), comments=(*op.comments, about)),)


def _offsets(op: Parallel, access: Access) -> list[Expr] | None:
    """The offset of each index from its loop variable; None for other accesses, and without an offset."""
    if len(access.indices) != len(op.vars):
        return None
    found = [_offset(index, var, op) for index, var in zip(access.indices, op.vars, strict=True)]
    offsets = [offset for offset in found if offset is not None]
    moved = any(static_value(offset) != 0 for offset in offsets)
    return offsets if moved and len(offsets) == len(found) else None


def _offset(index: Expr, var: Var, op: Parallel) -> Expr | None:
    """The offset of the variable: loop-invariant, and uniform."""
    offset = rest_of_sum(index, var)
    return None if offset is None or set(op.vars) & set(walk(offset)) or is_of_thread(offset) else offset


def _reads(stmt: Stmt, access: Access) -> bool:
    """Whether it stores the element that it reads of the fragment, under no condition of its value."""
    parts = walk_evaluated(stmt.value) if isinstance(stmt, Store | Atomic) else ()
    loads = (part for part in parts if isinstance(part, Load))
    return any(load.buffer is access.buffer for load in loads)
