"""Whether equal calls give equal results: what rounds, or is seen, in the order in which threads come."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import expressions
from tile2cu.core.expr import Call, walk
from tile2cu.core.program import Atomic, AtomicTile, Buffer, Reduction, Scope, Stmt, walk_stmts

_IN_MEMORY = (Scope.GLOBAL, Scope.SHARED)


def summed_in_any_order(body: tuple[Stmt, ...]) -> Iterator[Buffer]:
    """The floating-point tensors and tiles that atomics add to: rounding depends on the order."""
    for stmt in walk_stmts(body):
        if isinstance(stmt, Atomic | AtomicTile) and stmt.kind is Reduction.SUM:
            buffer = stmt.buffer if isinstance(stmt, Atomic) else stmt.dst.buffer
            if buffer.dtype.is_float and buffer.memory.scope in _IN_MEMORY:
                yield buffer


def depends_on_order(body: tuple[Stmt, ...]) -> bool:
    """Whether a statement may give what depends on which thread comes first, or calls functions of the user's own."""
    return any(map(_depends_on_order, walk_stmts(body)))


def _depends_on_order(stmt: Stmt) -> bool:
    """Whether what a statement gives depends on which thread comes first, or on functions of the user's own."""
    if isinstance(stmt, Atomic) and (stmt.previous is not None or stmt.kind is None):
        return True
    calls = (part.function for expr in expressions(stmt) for part in walk(expr) if isinstance(part, Call))
    return any(function.startswith(("atomic", ":")) for function in calls)
