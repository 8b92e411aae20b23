"""Which tensors' elements reach indices and trip counts, through scalars and tiles."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import expressions
from tile2cu.core.expr import Expr, Load, Var, walk
from tile2cu.core.program import (
    Assign,
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Declare,
    Let,
    Loop,
    Scope,
    Stmt,
    Store,
    walk_stmts,
)


def indexing_tensors(body: tuple[Stmt, ...]) -> set[Buffer]:
    """The tensors whose elements reach an index or a trip count, through scalars and tiles."""
    stmts = list(walk_stmts(body))
    origins: dict[Var | Buffer, frozenset[Buffer]] = {}
    before = None
    while before != origins:  # through loops, what a later statement assigns reaches an earlier one
        before = dict(origins)
        for stmt in stmts:
            for target, given in _assigned(stmt):
                origins[target] = origins.get(target, frozenset()).union(*(_origins(each, origins) for each in given))
    return {tensor for stmt in stmts for index in _indices(stmt) for tensor in _origins(index, origins)}


def _assigned(stmt: Stmt) -> Iterator[tuple[Var | Buffer, tuple[Expr | Buffer, ...]]]:
    """What a statement gives a value to, and from what."""
    match stmt:
        case Let() | Assign():
            yield stmt.var, (stmt.value,)
        case Declare(init=init) if init is not None:
            yield stmt.var, (init,)
        case Store() if stmt.buffer.memory.scope is not Scope.GLOBAL:
            yield stmt.buffer.memory, (stmt.value,)
        case Copy() if stmt.dst.buffer.memory.scope is not Scope.GLOBAL:
            yield stmt.dst.buffer.memory, (stmt.src.buffer,)
        case _:
            pass


def _origins(value: Expr | Buffer, origins: dict[Var | Buffer, frozenset[Buffer]]) -> frozenset[Buffer]:
    """The integer tensors that a value is computed from."""
    if isinstance(value, Buffer):
        memory = value.memory
        if memory.scope is Scope.GLOBAL:
            return frozenset(() if value.dtype.is_float else (memory,))
        return origins.get(memory, frozenset())
    found: frozenset[Buffer] = frozenset()
    for part in walk(value):
        if isinstance(part, Load) and isinstance(part.buffer, Buffer):
            found |= _origins(part.buffer, origins)
        elif isinstance(part, Var):
            found |= origins.get(part, frozenset())
    return found


def _indices(stmt: Stmt) -> Iterator[Expr]:
    """The indices of a statement's accesses, and what decides how often a loop runs."""
    for expr in expressions(stmt):
        for part in walk(expr):
            if isinstance(part, Load):
                yield from part.indices
    match stmt:
        case Loop():
            yield from (stmt.start, stmt.stop)
        case Copy() | AtomicTile():
            yield from (part.start for region in (stmt.src, stmt.dst) for part in region.ranges)
        case Store() | Atomic():
            yield from stmt.indices
        case _:
            pass
