"""Elements that one statement writes in several iterations: whether its boxes may overlap without being the same box.

The same warp, or thread, writes an element of the same box each time; of another box, another one does.
"""

from collections.abc import Iterator
from math import gcd

from msgspec.structs import replace

from tile2cu.analysis.accesses import element_accesses
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.control import declared_in
from tile2cu.analysis.dependence import conflicts, is_among
from tile2cu.analysis.effects import Effects, effects_of
from tile2cu.analysis.linear import Linear
from tile2cu.analysis.prelude import around, block_of
from tile2cu.analysis.uses import statements, written_in
from tile2cu.core.expr import Address, Binary, Call, Expr, Load, Past, Role, Var, children, static_value
from tile2cu.core.program import Buffer, Copy, Let, Loop, Parallel, Scope, Stmt, While

_Side = tuple[Linear, int]  # where a box starts along a dimension, and its extent


def may_write_again(op: Stmt, here: Stmt, body: tuple[Stmt, ...]) -> bool:
    """Whether iterations of a loop around `here`, where `op` is, may write the same elements.

    If not, their boxes are provably disjoint.
    """
    path = around(body, here)
    if any(isinstance(outer, While) for outer in path):
        return True
    inner, inside = here, tuple[Stmt, ...]((op,))
    for outer in reversed(path):
        inside = (*statements(block_of((outer,), inner), Let, below=False), *inside)
        if isinstance(outer, Loop):
            own = Effects(writes=effects_of(inside).writes)
            if conflicts(own, own, outer):
                return True
            inside = (replace(outer, body=inside),)
        inner = outer
    return False


def may_overlap_in_part(op: Copy | Parallel, here: Stmt, body: tuple[Stmt, ...], bounds: Bounds) -> bool:
    """Whether boxes of a tensor that `op` writes in several iterations may overlap without being the same box.

    They are the same one, or disjoint, if what varies of each start is a multiple of the box's extent. Of a loop that
    writes no boxes, as one that scatters, nothing is known: the order of its writes is the user's.
    """
    loops = tuple(outer for outer in around(body, here) if isinstance(outer, Loop | While))
    if not loops:
        return False
    boxes = [_box(op, bounds)] if isinstance(op, Copy) else list(_boxes(op, bounds))
    apart = all(not box or _are_apart(box, loops, bounds) for box in boxes)
    return not apart and may_write_again(op, here, body)


def _box(op: Copy, bounds: Bounds) -> list[_Side]:
    """The box of a copy to a tensor; an extent that is not known is one of 0."""
    if op.dst.buffer.scope is not Scope.GLOBAL:
        return []
    return [(bounds.linear(part.start), int(static_value(part.extent) or 0)) for part in op.dst.ranges]


def _boxes(op: Parallel, bounds: Bounds) -> Iterator[list[_Side]]:
    """The boxes of tensors that a loop writes whose variables are indices, but for the start of a box."""
    extents = {var: int(static_value(extent) or 0) for var, extent in zip(op.vars, op.extents, strict=True)}
    inside = declared_in(op.body) | set(op.vars)
    for access in element_accesses(op.body):
        if access.is_store and not access.atomic and access.buffer.scope is Scope.GLOBAL:
            sides = [_side(bounds.linear(index), extents) for index in access.indices]
            if all(not _varies(atom, inside, frozenset()) for start, _ in sides for atom in start.terms):
                yield sides


def _side(index: Linear, extents: dict[Var, int]) -> _Side:
    own = [var for var in extents if index.terms.get(var) == 1]
    return (index.plus(Linear({own[0]: 1}, 0), -1), extents[own[0]]) if len(own) == 1 else (index, 1)


def _are_apart(box: list[_Side], loops: tuple[Stmt, ...], bounds: Bounds) -> bool:
    """Whether what iterations change of each start is a multiple of the box's extent."""
    inside, written = declared_in(loops), frozenset(buffer.memory for buffer in written_in(loops))
    for start, extent in box:
        varying = {atom: factor for atom, factor in start.terms.items() if _varies(atom, inside, written)}
        divisor = _divisor(Linear(varying, 0), bounds)
        if divisor and (not extent or divisor % extent):
            return False
    return True


def _varies(atom: Expr, inside: set[Var], written: frozenset[Buffer]) -> bool:
    """Whether an expression may have several values in loops that declare the variables and write the buffers."""
    match atom:
        case Past(name=name):
            return name in inside
        case Var():
            return atom in inside or atom.role is Role.MUTABLE
        case Load(buffer=Buffer() as buffer) if is_among(buffer, written):
            return True
        case Address():
            return True
        case Call() if not atom.args:
            return True
        case _:
            return any(_varies(part, inside, written) for part in children(atom))


def _divisor(sum_: Linear, bounds: Bounds) -> int:
    """A number that divides a sum for all values of its atoms; 0 where the sum is 0."""
    return gcd(sum_.constant, *(factor * _divisor_of(atom, bounds) for atom, factor in sum_.terms.items()))


def _divisor_of(atom: Expr, bounds: Bounds) -> int:
    if isinstance(atom, Binary) and atom.op == "*":
        return _divisor(bounds.linear(atom.lhs), bounds) * _divisor(bounds.linear(atom.rhs), bounds)
    return bounds.multiple_of(atom)
