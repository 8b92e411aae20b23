"""Unused tiles and named values: a compiler warns of them, and a reader looks for their use."""

from collections.abc import Iterator
from dataclasses import fields, replace

from tile2cu.analysis.lifetimes import buffers_in
from tile2cu.core.expr import Address, Call, Expr, Var, walk
from tile2cu.core.program import Assign, Declare, Launch, Let, Parallel, Range, Region, Stmt
from tile2cu.core.rebuild import Body, in_body

_PURE = frozenset(
    ["thread", "lane", "group", "cast", "min", "max", "abs", "ceildiv", "if_then_else", "infinity", "reinterpret"]
)


def without_unused(launch: Launch) -> Launch:
    """The launch without unused tiles, values and variables, and without statements that only define them."""
    launch = replace(launch, body=_without_unused_values(launch.body))
    used = {tile.name for tile in buffers_in((*launch.prelude, *launch.body))}
    return replace(launch, tiles=tuple(tile for tile in launch.tiles if tile.memory.name in used))


def _without_unused_values(body: Body) -> Body:
    while True:
        used = {part for expr in _expressions(body) for part in walk(expr) if isinstance(part, Var)}

        def change(body: Body, at: int, used: set[Var] = used) -> Body | None:
            stmt = body[at]
            if isinstance(stmt, Parallel):
                inner = in_body(stmt.body, change)
                return None if inner is stmt.body else (replace(stmt, body=inner),) if inner else ()
            if not isinstance(stmt, Let | Declare | Assign) or stmt.var in used:
                return None
            value = stmt.init if isinstance(stmt, Declare) else stmt.value
            return () if value is None or _only_gives_a_value(value) else None

        shorter = in_body(body, change)
        if shorter is body:
            return body
        body = shorter


def _only_gives_a_value(expr: Expr) -> bool:
    """Whether it has no side effect: no vote, no inline user code."""
    return not any(
        isinstance(part, Address) or (isinstance(part, Call) and part.function not in _PURE) for part in walk(expr)
    )


def _expressions(part: object) -> Iterator[Expr]:
    """All expressions of statements, without the variables that they define."""
    match part:
        case Assign(value=value) if not _only_gives_a_value(value):
            yield from (part.var, value)
        case Let() | Assign():
            yield part.value
        case Declare():
            yield from _expressions(part.init)
        case Expr():
            yield part
        case tuple():
            for item in part:
                yield from _expressions(item)
        case Stmt() | Region() | Range():
            for field in fields(part):
                yield from _expressions(getattr(part, field.name))
        case _:
            pass
