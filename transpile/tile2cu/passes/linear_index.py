"""Loops that index a fragment by a linear combination of several variables, `F[i * 8 + j]`, run over that index."""

import math
from collections.abc import Collection, Iterator
from itertools import combinations

from msgspec.structs import replace

from tile2cu.analysis.accesses import element_accesses, variables
from tile2cu.analysis.bounds import Bounds, bounds_of
from tile2cu.analysis.uses import names_used, statements
from tile2cu.core.expr import Binary, Expr, Role, Var, binary, int_const, static_value, substitute, without_past
from tile2cu.core.program import Launch, Let, Parallel, Scope, Stmt
from tile2cu.core.rebuild import Body, in_body, with_expressions
from tile2cu.core.record import Record
from tile2cu.passes.dead_code import without_unused


def flat_loops(launch: Launch) -> Launch:
    """The launch in which a fragment's index is a loop's own variable where several of them count its elements.

    The loop then gets the fragment's layout. A name of such an index, `k = i * 8 + j`, is the variable's.
    """
    bounds = bounds_of(launch)
    body = in_body(launch.body, lambda body, position: _flattened(body[position], bounds))
    return launch if body is launch.body else without_unused(replace(launch, body=body))


def _flattened(stmt: Stmt, bounds: Bounds) -> Body | None:
    if not isinstance(stmt, Parallel):
        return None
    op = stmt
    for group in sorted(_groups(stmt, bounds), key=lambda group: group.first, reverse=True):
        op = _joined(op, group, bounds)
    op = _without_aliases(op)
    return None if op is stmt else (op,)


class _Group(Record, frozen=True):
    """Adjacent variables of a loop, from `first` to before `end`, that together count a fragment's elements."""

    first: int
    end: int

    @property
    def joins(self) -> bool:
        return self.end - self.first > 1

    def elements(self, op: Parallel) -> int:
        return math.prod(int(static_value(extent) or 0) for extent in op.extents[self.first : self.end])

    def strides(self, op: Parallel) -> dict[Var, int]:
        """The stride of each variable in the index."""
        extents = [int(static_value(extent) or 0) for extent in op.extents[self.first : self.end]]
        return {op.vars[self.first + at]: math.prod(extents[at + 1 :]) for at in range(len(extents))}


def _groups(op: Parallel, bounds: Bounds) -> frozenset[_Group]:
    """The groups of variables that count elements of fragments; none where a fragment is indexed otherwise."""
    if None in map(static_value, op.extents):
        return frozenset()
    count = len(op.vars)
    possible = [_Group(first, end) for first in range(count) for end in range(first + 1, count + 1)]
    found: set[_Group] = set()
    for index, extent in _of_fragments(op):
        counted = bounds.linear(index)
        group = next((each for each in possible if each.strides(op) == counted.terms), None)
        if group is None and not {*op.vars} & variables(bounds.expanded(index)):
            continue  # loop-invariant
        if group is None or counted.constant or (group.joins and group.elements(op) != extent):
            return frozenset()
        found.add(group)
    disjoint = all(one.end <= other.first or other.end <= one.first for one, other in combinations(found, 2))
    return frozenset(group for group in found if group.joins) if disjoint else frozenset()


def _of_fragments(op: Parallel) -> Iterator[tuple[Expr, int]]:
    """Each index by which the loop accesses a fragment, and the extent of its dimension."""
    for access in element_accesses(op.body):
        if access.buffer.scope is Scope.FRAGMENT:
            yield from zip(access.indices, access.buffer.static_shape, strict=True)


def _joined(op: Parallel, group: _Group, bounds: Bounds) -> Parallel:
    """The loop with one variable in the place of a group, and all expressions in terms of it."""
    strides, own = group.strides(op), op.vars[group.first : group.end]
    one = Var(own[0].dtype, _name(op, own), Role.PARALLEL, own[0].number)
    zeros: dict[Expr, Expr] = {var: int_const(0) for var in own}

    def counted(expr: Expr) -> Expr | None:
        """`start + i * 8 + j` as `start + ij`."""
        if not (isinstance(expr, Binary) and expr.op == "+" and expr.dtype.is_int):
            return None
        start = substitute(bounds.expanded(expr), zeros)
        rest = bounds.linear(expr).plus(bounds.linear(start), -1)
        return binary("+", without_past(start), one) if rest.terms == strides and not rest.constant else None

    body = with_expressions(op.body, counted)
    values: dict[Expr, Expr] = {}
    for at, var in enumerate(own):
        extent = op.extents[group.first + at]
        quotient = one if strides[var] == 1 else binary("//", one, int_const(strides[var]))
        values[var] = quotient if at == 0 else binary("%", quotient, extent)
    named = {var: Var(var.dtype, var.name, Role.LET, var.number) for var in own}
    lets = tuple(Let(var=named[var], value=values[var], span=op.span) for var in own)
    body = (*lets, *(with_expressions(part, lambda expr: named.get(expr)) for part in body))  # type: ignore[call-overload]
    extent = op.extents[group.first]
    for other in op.extents[group.first + 1 : group.end]:
        extent = binary("*", extent, other)
    vars_ = (*op.vars[: group.first], one, *op.vars[group.end :])
    return replace(op, vars=vars_, extents=(*op.extents[: group.first], extent, *op.extents[group.end :]), body=body)


def _name(op: Parallel, own: tuple[Var, ...]) -> str:
    """The variables' names joined, if nothing in the loop has that name."""
    wish = "".join(var.name for var in own)
    return wish if wish not in names_used((op,)) else f"{wish}_flat"


def _without_aliases(op: Parallel) -> Parallel:
    """The loop without names of its variables by which fragments are indexed; the last one takes the name's place."""
    lets = {part.var: part.value for part in statements(op.body, Let) if part.value in op.vars}
    used = {part: lets[part] for index, _ in _of_fragments(op) for part in variables(index) if part in lets}
    if not used:
        return op
    body = in_body(op.body, lambda body, at: () if _binds(body[at], used) else None)
    body = tuple(with_expressions(part, lambda expr: used.get(expr)) for part in body)  # type: ignore[call-overload]
    renamed: dict[Expr, Expr] = {}
    for alias, var in used.items():
        assert isinstance(alias, Var)
        if var.role is Role.PARALLEL:
            renamed[var] = Var(var.dtype, alias.name, Role.PARALLEL, alias.number)
    vars_ = tuple(renamed.get(var, var) for var in op.vars)
    body = with_expressions(body, renamed.get)
    return replace(op, vars=vars_, body=body)


def _binds(stmt: Stmt, names: Collection[Var]) -> bool:
    return isinstance(stmt, Let) and stmt.var in names
