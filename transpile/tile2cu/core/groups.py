"""Kernels whose groups of threads work each by itself: who does what stands outside of `with T.ws(...)`."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from tile2cu.core.accesses import buffers_written
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, binary, int_const
from tile2cu.core.program import (
    AtomicTile,
    Copy,
    Fill,
    If,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Scope,
    Stmt,
    While,
    group_of,
)

_MEMORY = (Scope.GLOBAL, Scope.SHARED)


def in_group(group: int) -> Expr:
    """The condition that a thread is of a group."""
    return binary("==", Call(INT32, "group", ()), int_const(group))


def by_groups(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Operations on whole tiles that all groups come to: the first one does those that write memory.

    Each group does those that write fragments, of which it has its own.
    """
    done: list[Stmt] = []
    for by_first, run in groupby(body, _is_done_once):
        stmts = tuple(run)
        if by_first:
            done.append(If(condition=in_group(0), then=stmts, once=True, span=stmts[0].span))
        else:
            done += map(_inside, stmts)
    return tuple(done)


def _is_done_once(stmt: Stmt) -> bool:
    """Whether it is an operation on a tile in memory."""
    return isinstance(stmt, Copy | Fill | AtomicTile | Reduce | Scan | Parallel) and _writes_memory(stmt)


def _inside(stmt: Stmt) -> Stmt:
    match stmt:
        case If() if group_of(stmt) is None:
            return replace(stmt, then=by_groups(stmt.then), orelse=by_groups(stmt.orelse))
        case Loop() | While():
            return replace(stmt, body=by_groups(stmt.body))
        case _:
            return stmt


def outside_of_groups(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements that all groups come to, those of loops and branches included."""
    for stmt in body:
        if group_of(stmt) is None:
            yield stmt
            match stmt:
                case Loop() | While():
                    yield from outside_of_groups(stmt.body)
                case If():
                    yield from outside_of_groups((*stmt.then, *stmt.orelse))
                case _:
                    pass


def _writes_memory(stmt: Stmt) -> bool:
    return any(buffer.scope in _MEMORY for buffer in buffers_written(stmt))
