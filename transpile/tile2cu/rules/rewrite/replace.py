"""Statements with parts replaced; what does not change stays the same object."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tile2cu.core.expr import Expr, Load, rebuilt
from tile2cu.core.program import (
    Assert,
    Assign,
    Atomic,
    Buffer,
    Declare,
    If,
    Let,
    Loop,
    Parallel,
    Print,
    Stmt,
    Store,
    While,
)

Body = tuple[Stmt, ...]


def with_buffer(stmt: Stmt, old: Buffer, new: Buffer) -> Stmt:
    """An elementwise statement that reads and writes elements of `new` instead of `old`."""

    def change(expr: Expr) -> Expr | None:
        return Load(new.dtype, new, expr.indices) if isinstance(expr, Load) and expr.buffer is old else None

    def of(expr: Expr) -> Expr:
        return rebuilt(expr, change)

    match stmt:
        case Store() | Atomic():
            buffer = new if stmt.buffer is old else stmt.buffer
            return replace(stmt, buffer=buffer, indices=tuple(map(of, stmt.indices)), value=of(stmt.value))
        case If():
            then, orelse = (tuple(with_buffer(part, old, new) for part in body) for body in (stmt.then, stmt.orelse))
            return replace(stmt, condition=of(stmt.condition), then=then, orelse=orelse)
        case While():
            return replace(stmt, condition=of(stmt.condition), body=_all_with_buffer(stmt.body, old, new))
        case Loop() | Parallel():
            return replace(stmt, body=_all_with_buffer(stmt.body, old, new))
        case _:
            return _with_values(stmt, of)


def _with_values(stmt: Stmt, of: Callable[[Expr], Expr]) -> Stmt:
    """A statement without a body and without elements that it writes, with its expressions replaced."""
    match stmt:
        case Let() | Assign():
            return replace(stmt, value=of(stmt.value))
        case Declare():
            return replace(stmt, init=None if stmt.init is None else of(stmt.init))
        case Assert():
            return replace(stmt, condition=of(stmt.condition))
        case Print() if isinstance(stmt.what, Expr):
            return replace(stmt, what=of(stmt.what))
        case _:
            return stmt


def _all_with_buffer(body: Body, old: Buffer, new: Buffer) -> Body:
    return tuple(with_buffer(part, old, new) for part in body)


def in_body(body: Body, change: Callable[[Body, int], Body | None]) -> Body:
    """The statements with each that `change(body, place)` answers for replaced by those it gives."""
    rebuilt: list[Stmt] = []
    for place, stmt in enumerate(body):
        found = change(body, place)
        rebuilt += [_inside(stmt, change)] if found is None else list(found)
    same = len(rebuilt) == len(body) and all(a is b for a, b in zip(rebuilt, body, strict=True))
    return body if same else tuple(rebuilt)


def _inside(stmt: Stmt, change: Callable[[Body, int], Body | None]) -> Stmt:
    match stmt:
        case If():
            then, orelse = in_body(stmt.then, change), in_body(stmt.orelse, change)
            same = then is stmt.then and orelse is stmt.orelse
            return stmt if same else replace(stmt, then=then, orelse=orelse)
        case Loop() | While():
            body = in_body(stmt.body, change)
            return stmt if body is stmt.body else replace(stmt, body=body)
        case _:
            return stmt


def under_comments(op: Stmt, stmts: Sequence[Stmt]) -> Body:
    """The statements in the place of one, whose comments stand above the first."""
    first = replace(stmts[0], comments=op.comments, trailing=op.trailing)
    return (first, *(replace(stmt, comments=(), trailing="") for stmt in stmts[1:]))
