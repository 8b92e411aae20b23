"""Tiles that a kernel reads before it writes to them."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import buffers_written, expressions
from tile2cu.core.expr import Binary, Call, Expr, Load, children
from tile2cu.core.program import (
    Buffer,
    Copy,
    Gemm,
    If,
    Launch,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Scope,
    Stmt,
    Store,
    While,
    walk_stmts,
)
from tile2cu.core.span import Span

_TILES = (Scope.SHARED, Scope.FRAGMENT, Scope.LOCAL)


def read_unwritten(launch: Launch) -> dict[Buffer, Span]:
    """The tiles that a statement reads although none before it, in program order, writes to them; and where.

    Only certain cases: a branch may be taken in later iterations alone, or by other threads than those that write.
    """
    found: dict[Buffer, Span] = {}
    written: set[Buffer] = set()
    for stmt in _first_iteration(launch.body):
        read = {tile.memory for tile in _read(stmt) if tile.scope in _TILES and tile.reducer is None}
        found |= dict.fromkeys(read - written - found.keys(), stmt.span)
        written |= {tile.memory for inner in walk_stmts((stmt,)) for tile in buffers_written(inner)}
    return found


def _first_iteration(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements that the first iteration of each loop executes; branches as a whole."""
    for stmt in body:
        if isinstance(stmt, Loop | While | Parallel):
            yield from _first_iteration(stmt.body)
        else:
            yield stmt


def _read(stmt: Stmt) -> set[Buffer]:
    """The buffers that a statement certainly reads; for a branch none."""
    if isinstance(stmt, If):
        return set()
    parts = (part for expr in expressions(stmt) for part in _evaluated(expr))
    found = {part.buffer for part in parts if isinstance(part, Load) and isinstance(part.buffer, Buffer)}
    match stmt:
        case Store(buffer=buffer, op=op) if op:
            found.add(buffer)
        case Copy():
            found.add(stmt.src.buffer)
        case Scan():
            found.add(stmt.src)
        case Gemm():
            kept = [] if stmt.clear or stmt.clear_if is not None else [stmt.c]
            found |= {region.buffer for region in (stmt.a, stmt.b, *kept)}
        case Reduce():
            found |= {stmt.src} if stmt.clear else {stmt.src, stmt.dst}
        case _:
            pass
    return found


def _evaluated(expr: Expr) -> Iterator[Expr]:
    """The parts of an expression that are always evaluated."""
    yield expr
    match expr:
        case Call(function="if_then_else", args=(first, *_)) | Binary(op="and" | "or", lhs=first):
            yield from _evaluated(first)
        case _:
            for part in children(expr):
                yield from _evaluated(part)
