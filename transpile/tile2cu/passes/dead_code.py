"""Unused tiles and named values: a compiler warns of them, and a reader looks for their use."""

from msgspec.structs import replace

from tile2cu.analysis.lifetimes import buffers_in
from tile2cu.core.expr import ARITHMETIC, Address, Call, Expr, Var, variables_in, walk
from tile2cu.core.fields import fields_of
from tile2cu.core.memo import kept
from tile2cu.core.program import Assign, Declare, Launch, Let, Parallel, Range, Region, Stmt
from tile2cu.core.rebuild import Body, in_body

_PURE = ARITHMETIC | {"thread", "lane", "group", "infinity", "reinterpret"}


def without_unused(launch: Launch) -> Launch:
    """The launch without unused tiles, values and variables, and without statements that only define them."""
    launch = replace(launch, body=_without_unused_values(launch.body))
    used = {tile.name for tile in buffers_in((*launch.prelude, *launch.body))}
    return replace(launch, tiles=tuple(tile for tile in launch.tiles if tile.memory.name in used))


def _without_unused_values(body: Body) -> Body:
    while True:
        used = frozenset[Var]().union(*map(_used, body))

        def change(body: Body, at: int, used: frozenset[Var] = used) -> Body | None:
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


@kept
def _used(stmt: Stmt) -> frozenset[Var]:
    """The variables that a statement and all below it mention, but for those that they define."""
    match stmt:
        case Assign(value=value) if not _only_gives_a_value(value):
            return _mentioned((stmt.var, value))
        case Let() | Assign():
            return _mentioned(stmt.value)
        case Declare():
            return _mentioned(stmt.init)
        case _:
            return _mentioned(tuple(fields_of(stmt).values()))


def _mentioned(part: object) -> frozenset[Var]:
    match part:
        case Expr():
            return variables_in(part)
        case Stmt():
            return _used(part)
        case tuple():
            return frozenset[Var]().union(*map(_mentioned, part))
        case Region() | Range():
            return _mentioned(tuple(fields_of(part).values()))
        case _:
            return frozenset()
