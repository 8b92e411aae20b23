"""Why nobody can load for a loop by itself: what it would load too early, or would have to do that others do."""

from collections.abc import Iterable

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_written,
    element_accesses,
    own_accesses,
    used_by_itself,
    variables,
)
from tile2cu.analysis.prelude import around, before, deciding, defined_in, loaded_by, needed_on, prelude, stands_on
from tile2cu.analysis.sync_calls import waits_for_kernels
from tile2cu.core.expr import Expr, Role, Var
from tile2cu.core.program import (
    Assign,
    Break,
    Buffer,
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
    bodies,
    steps,
    walk_stmts,
)

_SCALAR = (Let, Declare, Assign, Loop, If, While, Break, Continue)


def why_no_way(loop: Loop, loads: tuple[Stmt, ...], launch: Launch) -> str:
    """Why nobody can load for a loop, where it stands in others from turn to turn of all of them; empty where one can.

    What decides where loads come from is computed once more, by those who load: from scalars, and from tensors that the
    kernel does not write. A tile that is loaded for a later turn is the loop's alone.
    """
    if leaves := _breaks(loop.body):
        return f"line {leaves[0].span.line} leaves the loop, for which a producer would go on loading"
    path = around(launch.body, loop)
    if not path:
        above, needed = before(launch.body, loop), loaded_by(loop, loads)
        return _why_not_first(loop, loads, above) or why_no_prelude(needed, above)
    parts = tuple(steps(launch.body))
    written = _memories(buffer for stmt in parts for buffer in buffers_written(stmt))
    above = before(launch.body, path[0])
    return (
        _why_not_ahead(loop, loads, parts, written)
        or _why_not_twice(loop, loads, path, written)
        or why_no_prelude(needed_on(loop, loads, path), above)
    )


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
            changed |= {var for var in defined_in(stmt) if var.role is Role.MUTABLE}
        elif late := stands_on(stmt) & changed:
            name = min(var.name for var in late)
            return f"`{name}` in line {stmt.span.line} changes before the loop, whose loads need it"
    return ""


def _why_not_first(loop: Loop, loads: tuple[Stmt, ...], above: tuple[Stmt, ...]) -> str:
    """Why loads cannot run ahead of the statements `above` their loop; empty if they can."""
    chosen = prelude(loaded_by(loop, loads), above)
    read = _read_for(loop, loads, tuple(walk_stmts(chosen)))
    for stmt in walk_stmts(above):
        if not bodies(stmt) and (changed := read & _memories(buffers_written(stmt))):
            return f"`{min(changed)}` is written in line {stmt.span.line}, and would be loaded before"
    return ""


def _why_not_ahead(loop: Loop, loads: tuple[Stmt, ...], parts: tuple[Stmt, ...], written: frozenset[str]) -> str:
    """Why loads cannot run ahead of the turns around their loop; empty if they can."""
    inside = {id(stmt) for stmt in walk_stmts((loop,))}
    others = tuple(stmt for stmt in parts if id(stmt) not in inside)
    used = _memories(buffer for stmt in others for buffer in used_by_itself(stmt))
    if shared := used & _memories(tile for load in loads for tile in buffers_written(load)):
        return f"`{min(shared)}` is used outside of its loop, too, while it is loaded for the next turns"
    if changed := written & _read_for(loop, loads):
        return f"`{min(changed)}` is written by the kernel, which would load it before"
    return ""


def _why_not_twice(loop: Loop, loads: tuple[Stmt, ...], path: tuple[Stmt, ...], written: frozenset[str]) -> str:
    """Why those who load cannot go the path to a loop by themselves; empty if they can."""
    inside = {id(stmt) for stmt in walk_stmts((loop,))}
    for stmt in walk_stmts(path[:1]):
        if isinstance(stmt, Break | Continue) and id(stmt) not in inside:
            return f"line {stmt.span.line} leaves a turn of a loop around the one that loads"
    needed = variables(*needed_on(loop, loads, path))
    if changing := [var.name for var in defined_in(loop) & needed if var.role is Role.MUTABLE]:
        return f"`{min(changing)}` decides what is loaded, and changes in the loop that loads"
    for stmt in (*walk_stmts((*deciding(loop, loads, path),)), *path):
        tensors = [access.buffer for access in own_accesses(stmt)]
        scalar = isinstance(stmt, _SCALAR) or waits_for_kernels(stmt)
        if not scalar or any(each.scope is not Scope.GLOBAL for each in tensors):
            return f"line {stmt.span.line} belongs to what loads need, and works on tiles"
        if _memories(tensors) & written:
            return f"line {stmt.span.line} belongs to what loads need, and reads what the kernel writes"
    return ""


def _breaks(body: tuple[Stmt, ...]) -> list[Stmt]:
    """The breaks that leave a loop of this body."""
    ways = [arm for stmt in body if isinstance(stmt, If) for arm in bodies(stmt)]
    return [stmt for stmt in body if isinstance(stmt, Break)] + [each for way in ways for each in _breaks(way)]


def _read_for(loop: Loop, loads: tuple[Stmt, ...], asked: tuple[Stmt, ...] = ()) -> frozenset[str]:
    """What those who load read: for the turns, for the loads, and for what is `asked` before."""
    elements = {access.buffer for stmt in (loop, *asked) for access in own_accesses(stmt)}
    return _memories(elements.union(*map(buffers_read, loads)))


def _memories(buffers: Iterable[Buffer]) -> frozenset[str]:
    """The names of what lies behind tiles and tensors, and views of them."""
    return frozenset(buffer.memory.name for buffer in buffers)
