"""Statements with parts replaced; unchanged parts stay the same object."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from tile2cu.core.expr import Expr, Load, rebuilt
from tile2cu.core.fields import fields_of
from tile2cu.core.program import Buffer, If, Loop, Range, Region, Stmt, While, bodies

Body = tuple[Stmt, ...]
Part = TypeVar("Part", bound=object)
Kind = TypeVar("Kind", bound=Stmt)


def with_buffer(part: Part, old: Buffer, new: Buffer) -> Part:
    """A statement, with all below it, that reads and writes `new` instead of `old`, which has the same shape."""

    def change(expr: Expr) -> Expr | None:
        return Load(new.dtype, new, expr.indices) if isinstance(expr, Load) and expr.buffer is old else None

    return _changed(part, change, lambda buffer: new if buffer is old else buffer)


def with_expressions(part: Part, change: Callable[[Expr], Expr | None]) -> Part:
    """A statement, with all below it, with each part of its expressions replaced for which `change` returns another."""
    return _changed(part, change, lambda buffer: buffer)


def _changed(part: Part, change: Callable[[Expr], Expr | None], of_buffer: Callable[[Buffer], Buffer]) -> Part:
    def of(part: object) -> object:
        match part:
            case Buffer():
                return of_buffer(part)
            case Expr():
                return rebuilt(part, change)
            case tuple():
                parts = tuple(map(of, part))
                return part if all(a is b for a, b in zip(parts, part, strict=True)) else parts
            case Stmt() | Region() | Range():
                old = fields_of(part)
                found = {name: of(value) for name, value in old.items()}
                changes = {name: value for name, value in found.items() if value is not old[name]}
                return replace(part, **changes) if changes else part
            case _:
                return part

    return of(part)  # type: ignore[return-value]


def in_body(body: Body, change: Callable[[Body, int], Body | None]) -> Body:
    """The statements, each replaced by those that `change(body, place)` returns for it, if any."""
    parts: list[Stmt] = []
    for place, stmt in enumerate(body):
        found = change(body, place)
        parts += _inside(stmt, change) if found is None else found
    return _same_or(parts, body)


def _inside(stmt: Stmt, change: Callable[[Body, int], Body | None]) -> Body:
    """The statement with changes inside; an empty branch is removed, or takes the other arm alone."""
    found = with_bodies(stmt, lambda body: in_body(body, change))
    return found.with_arms(found.then, found.orelse) if isinstance(found, If) and found is not stmt else (found,)


def with_instead(body: Body, instead: Mapping[int, Body]) -> Body:
    """The statements, each with those in its place that `instead` has for its id."""
    return in_body(body, lambda body, place: instead.get(id(body[place])))


def each_replaced(body: Body, change: Callable[[Stmt], Body]) -> Body:
    """The statements, each replaced by those that `change` returns for it."""
    return _same_or([part for stmt in body for part in change(stmt)], body)


def _same_or(parts: list[Stmt], body: Body) -> Body:
    return body if len(parts) == len(body) and all(a is b for a, b in zip(parts, body, strict=True)) else tuple(parts)


def with_own_expressions(stmt: Kind, change: Callable[[Expr], Expr | None]) -> Kind:
    """A statement with each part of its expressions replaced, but for those of the statements in its bodies."""
    inside = iter(bodies(stmt))
    return with_bodies(with_expressions(with_bodies(stmt, lambda _: ()), change), lambda _: next(inside))


def with_bodies(stmt: Kind, change: Callable[[Body], Body]) -> Kind:
    """A loop or a branch with what `change` returns for each of its bodies, in order; any other statement itself."""
    match stmt:
        case If():
            then, orelse = change(stmt.then), change(stmt.orelse)
            same = then is stmt.then and orelse is stmt.orelse
            return stmt if same else replace(stmt, then=then, orelse=orelse)
        case Loop() | While():
            body = change(stmt.body)
            return stmt if body is stmt.body else replace(stmt, body=body)
        case _:
            return stmt


def with_all_bodies(stmt: Kind, change: Callable[[Body], Body | None]) -> Kind | None:
    """The same; None where `change` returns None for one of the bodies."""
    found = [change(body) for body in bodies(stmt)]
    changed = [body for body in found if body is not None]
    inside = iter(changed)
    return with_bodies(stmt, lambda _: next(inside)) if len(changed) == len(found) else None


def under_comments(op: Stmt, stmts: Sequence[Stmt]) -> Body:
    """The statements in the place of one, whose comments are moved to the first."""
    first = replace(stmts[0], comments=op.comments, trailing=op.trailing)
    return (first, *(replace(stmt, comments=(), trailing="") for stmt in stmts[1:]))
