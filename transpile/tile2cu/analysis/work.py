"""The MMA work of a program: floating-point operations of its GEMMs, for given sizes."""

from collections.abc import Mapping
from itertools import product
from math import prod

from tile2cu.analysis.accesses import variables
from tile2cu.analysis.uses import has, has_mma
from tile2cu.core.expr import Expr, Var, int_const, static_value, substitute
from tile2cu.core.program import Gemm, If, Launch, Let, Loop, Program, Stmt, While, walk_stmts

_MOST_STEPS = 1 << 20  # loop iterations and blocks that are counted one by one
Values = Mapping[Expr, Expr]


class _Unknown(Exception):
    """A trip count or a condition depends on values in memory, or there are too many to count."""


def mma_flops(program: Program, sizes: Mapping[str, int]) -> int | None:
    """The operations of all GEMMs, 2 M N K for each tile that a block multiplies, rows outside of a tensor included.

    `sizes` are the run-time sizes and scalars by name. None where the contents of memory decide how many there are.
    """
    known = [*program.sizes, *(param for param in program.params if isinstance(param, Var))]
    values: dict[Expr, Expr] = {var: int_const(int(sizes[var.name])) for var in known if var.name in sizes}
    try:
        return sum(_of_launch(launch, values) for launch in program.launches)
    except _Unknown:
        return None


def _of_launch(launch: Launch, values: Values) -> int:
    if not has_mma(launch):
        return 0
    extents = [_number(extent, values) for extent in launch.grid]
    used = _variables(launch.body)
    axes = list(zip(launch.blocks, extents, strict=False))
    counted = [(block, extent) for block, extent in axes if block in used]
    if prod(extent for _, extent in counted) > _MOST_STEPS:
        raise _Unknown
    total = sum(
        _of_body(launch.body, {**values, **_constants(counted, place)})
        for place in product(*(range(extent) for _, extent in counted))
    )
    return total * prod(extents) // (prod(extent for _, extent in counted) or 1)


def _constants(axes: list[tuple[Var, int]], place: tuple[int, ...]) -> Values:
    return {block: int_const(at) for (block, _), at in zip(axes, place, strict=True)}


def _of_body(body: tuple[Stmt, ...], values: Values) -> int:
    total = 0
    for stmt in body:
        if isinstance(stmt, Let):
            value = static_value(substitute(stmt.value, values))
            if isinstance(value, int):
                values = {**values, stmt.var: int_const(value)}
        else:
            total += _of(stmt, values)
    return total


def _of(stmt: Stmt, values: Values) -> int:
    match stmt:
        case Gemm(mnk=(m, n, k)):
            return 2 * m * n * k
        case Loop() if has(stmt.body, Gemm):
            return _of_loop(stmt, values)
        case If() if has((stmt,), Gemm):
            return _of_body(stmt.then if _number(stmt.condition, values) else stmt.orelse, values)
        case While() if has(stmt.body, Gemm):
            raise _Unknown
    return 0


def _of_loop(loop: Loop, values: Values) -> int:
    start, stop, step = (_number(part, values) for part in (loop.start, loop.stop, loop.step))
    if not step:
        raise _Unknown
    trips = range(start, stop, step)
    if loop.var not in _variables(loop.body):
        return len(trips) * _of_body(loop.body, values)
    if len(trips) > _MOST_STEPS:
        raise _Unknown
    return sum(_of_body(loop.body, {**values, loop.var: int_const(at)}) for at in trips)


def _variables(body: tuple[Stmt, ...]) -> frozenset[Var]:
    """The variables on which the count of GEMMs in the body depends, also by way of names for values."""
    found: set[Var] = set()
    named: dict[Var, Expr] = {}
    for stmt in walk_stmts(body):
        match stmt:
            case Let():
                named[stmt.var] = stmt.value
                continue
            case Loop() if has(stmt.body, Gemm):
                parts: tuple[Expr, ...] = (stmt.start, stmt.stop, stmt.step)
            case If() if has((stmt,), Gemm):
                parts = (stmt.condition,)
            case _:
                continue
        found |= variables(*parts)
    pending = list(found)
    while pending:
        if (value := named.get(pending.pop())) is not None:
            further = variables(value) - found
            found |= further
            pending += further
    return frozenset(found)


def _number(expr: Expr, values: Values) -> int:
    value = static_value(substitute(expr, values))
    if value is None:
        raise _Unknown
    return int(value)
