"""What a kernel computes before a loop for those who only load for it."""

from tile2cu.core.accesses import element_accesses, expressions, variables
from tile2cu.core.expr import Expr, Role, Var
from tile2cu.core.facts import Facts
from tile2cu.core.program import (
    Assign,
    Break,
    Continue,
    Declare,
    If,
    Launch,
    Let,
    Loop,
    LoopKind,
    Scope,
    Stmt,
    While,
    waits_for_kernels,
    walk_stmts,
)
from tile2cu.core.schedule import Pipeline

_SCALAR = (Let, Declare, Assign, Loop, If, While, Break, Continue)


def producer_loop(launch: Launch, facts: Facts) -> tuple[Loop, Pipeline] | None:
    """The loop whose loads a producer warp does: there is one at most, at the top of the kernel's body."""
    for op in launch.body:
        pipeline: Pipeline | None = facts.get(op, "pipeline") if isinstance(op, Loop) else None
        if isinstance(op, Loop) and pipeline is not None and pipeline.producer:
            return op, pipeline
    return None


def before(body: tuple[Stmt, ...], loop: Loop) -> tuple[Stmt, ...]:
    """The statements of a block above one of its loops."""
    return body[: next(place for place, stmt in enumerate(body) if stmt is loop)]


def loaded_by(loop: Loop, loads: tuple[Stmt, ...]) -> tuple[Expr, ...]:
    """What the turns of a loop and its loads are computed from."""
    return (loop.start, loop.stop, *(expr for load in loads for expr in expressions(load)))


def prelude(needed: tuple[Expr, ...], above: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements `above` that the values in these expressions stand on, in order; who loads waits, too."""
    names = variables(*needed)
    found: list[Stmt] = []
    for stmt in reversed(above):
        if _defines(stmt) & names or waits_for_kernels(stmt):
            found.insert(0, stmt)
            names |= _reads(stmt)
    return tuple(found)


def why_no_prelude(needed: tuple[Expr, ...], above: tuple[Stmt, ...]) -> str:
    """Why the prelude cannot run on its own and first; empty if it can.

    It may hold scalars only, may read tensors only, and no other statement may read a variable that it changes later.
    """
    chosen = prelude(needed, above)
    for stmt in walk_stmts(chosen):
        parallel = isinstance(stmt, Loop) and stmt.kind is LoopKind.PIPELINED
        tiles = any(access.buffer.scope is not Scope.GLOBAL for access in element_accesses((stmt,)))
        if not (isinstance(stmt, _SCALAR) or waits_for_kernels(stmt)) or parallel or tiles:
            return f"line {stmt.span.line} belongs to what loads need, and works on tiles"
    changed: set[Var] = set()
    for stmt in reversed(above):
        if stmt in chosen:
            changed |= {var for var in _defines(stmt) if var.role is Role.MUTABLE}
        elif late := _reads(stmt) & changed:
            name = min(var.name for var in late)
            return f"`{name}` in line {stmt.span.line} changes before the loop, whose loads need it"
    return ""


def _defines(stmt: Stmt) -> set[Var]:
    return {part.var for part in walk_stmts((stmt,)) if isinstance(part, Let | Declare | Assign)}


def _reads(stmt: Stmt) -> set[Var]:
    """The variables that a statement stands on: those that it reads, and the value that an assignment may keep."""
    parts = tuple(walk_stmts((stmt,)))
    kept = {part.var for part in parts if isinstance(part, Assign)}
    return kept | {var for part in parts for var in variables(*expressions(part))}
