"""Why no producer can load for a loop: it would load too early, or would have to run other statements."""

from collections.abc import Iterable

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_written,
    element_accesses,
    own_accesses,
    used_by_itself,
    variables,
)
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.prelude import around, before, deciding, defined_in, depends_on, loaded_by, needed_on, prelude
from tile2cu.analysis.sync_calls import waits_for_kernels
from tile2cu.analysis.uses import outside_of, written_in
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
    walk_stmts,
)

_SCALAR = (Let, Declare, Assign, Loop, If, While, Break, Continue)


def why_no_producer(loop: Loop, loads: tuple[Stmt, ...], launch: Launch, same: tuple[Loop, ...]) -> str:
    """Why no producer can load for a loop within others, over all of their iterations; empty where one can.

    The values that select the loads are computed again by the producer: from scalars, and from tensors that the kernel
    does not write. Only this loop, and those that load the `same` tiles, use one that is loaded for a later iteration.
    """
    if leaves := _breaks(loop.body):
        return f"line {leaves[0].span.line} leaves the loop, for which a producer would continue to load"
    path = around(launch.body, loop)
    if not path:
        above, needed = before(launch.body, loop), loaded_by(loop, loads)
        return (
            _why_not_first(loop, loads, above)
            or why_no_prelude(needed, above)
            or _why_not_at_its_time(loop, prelude(needed, above), launch)
        )
    written = written_in(launch.body)
    above = before(launch.body, path[0])
    return (
        _why_not_prefetched(loop, loads, outside_of(same, launch.body), written)
        or _why_not_twice(loop, loads, path, written)
        or why_no_prelude(needed_on(loop, loads, path), above)
    )


def why_no_prelude(needed: tuple[Expr, ...], above: tuple[Stmt, ...]) -> str:
    """Why the prelude cannot run independently and first; empty if it can.

    It may have scalars only, may read tensors only, and no other statement may read a variable that it changes later.
    """
    chosen = prelude(needed, above)
    for stmt in walk_stmts(chosen):
        parallel = isinstance(stmt, Loop) and stmt.kind is LoopKind.PIPELINED
        tiles = any(access.buffer.scope is not Scope.GLOBAL for access in element_accesses((stmt,)))
        if not (isinstance(stmt, _SCALAR) or waits_for_kernels(stmt)) or parallel or tiles:
            return f"line {stmt.span.line} computes values that loads need, and is a tile operation"
    changed: set[Var] = set()
    for stmt in reversed(above):
        if stmt in chosen:
            changed |= {var for var in defined_in(stmt) if var.role is Role.MUTABLE}
        elif late := depends_on(stmt) & changed:
            name = min(var.name for var in late)
            return f"`{name}` in line {stmt.span.line} changes before the loop, whose loads need it"
    return ""


def _why_not_first(loop: Loop, loads: tuple[Stmt, ...], above: tuple[Stmt, ...]) -> str:
    """Why loads cannot precede the statements `above` their loop; empty if they can."""
    chosen = prelude(loaded_by(loop, loads), above)
    read = _read_for(loop, loads, tuple(walk_stmts(chosen)))
    for stmt in walk_stmts(above):
        if not bodies(stmt) and (changed := _among(read, buffers_written(stmt))):
            return f"`{min(changed)}` is written in line {stmt.span.line}, and would be loaded earlier"
    return ""


def _why_not_at_its_time(loop: Loop, above: tuple[Stmt, ...], launch: Launch) -> str:
    """Why a producer may not read values `above` a loop, or its trip count, when it comes there; empty if it may.

    Consumers whose loop has no iteration do not wait for it, and write what it has not read.
    """
    written = written_in(launch.body)
    for stmt in (*walk_stmts(above), loop):
        if changed := _among((access.buffer for access in own_accesses(stmt)), written):
            return f"`{min(changed)}` is written by the kernel, whose producer would read it at another time"
    return ""


def _why_not_prefetched(loop: Loop, loads: tuple[Stmt, ...], others: list[Stmt], written: frozenset[Buffer]) -> str:
    """Why loads cannot precede the iterations of the enclosing loops, and `others`; empty if they can."""
    used = frozenset[Buffer]().union(*map(used_by_itself, others))
    if shared := _among(written_in(loads), used):
        return f"`{min(shared)}` is used outside of its loop, too, while it is loaded for the next iterations"
    if changed := _among(_read_for(loop, loads), written):
        return f"`{min(changed)}` is written by the kernel, which would load it earlier"
    return ""


def _why_not_twice(loop: Loop, loads: tuple[Stmt, ...], path: tuple[Stmt, ...], written: frozenset[Buffer]) -> str:
    """Why a producer cannot run the enclosing loops and branches itself; empty if it can."""
    inside = {id(stmt) for stmt in walk_stmts((loop,))}
    for stmt in walk_stmts(path[:1]):
        if isinstance(stmt, Break | Continue) and id(stmt) not in inside:
            return f"line {stmt.span.line} leaves an iteration of a loop that encloses the loads"
    needed = variables(*needed_on(loop, loads, path))
    if changing := [var.name for var in defined_in(loop) & needed if var.role is Role.MUTABLE]:
        return f"`{min(changing)}` selects loads, and changes in their loop"
    for stmt in (*walk_stmts((*deciding(loop, loads, path),)), *path):
        tensors = [access.buffer for access in own_accesses(stmt)]
        scalar = isinstance(stmt, _SCALAR) or waits_for_kernels(stmt)
        if not scalar or any(each.scope is not Scope.GLOBAL for each in tensors):
            return f"line {stmt.span.line} computes values that loads need, and is a tile operation"
        if _among(tensors, written):
            return f"line {stmt.span.line} computes values that loads need, and reads memory that the kernel writes"
    return ""


def _breaks(body: tuple[Stmt, ...]) -> list[Stmt]:
    """The breaks that leave a loop of this body."""
    ways = [arm for stmt in body if isinstance(stmt, If) for arm in bodies(stmt)]
    return [stmt for stmt in body if isinstance(stmt, Break)] + [each for way in ways for each in _breaks(way)]


def _read_for(loop: Loop, loads: tuple[Stmt, ...], asked: tuple[Stmt, ...] = ()) -> frozenset[Buffer]:
    """The buffers that a producer reads: for the iterations, for the loads, and for the conditions `asked` before."""
    elements = {access.buffer for stmt in (loop, *asked) for access in own_accesses(stmt)}
    return frozenset(elements.union(*map(buffers_read, loads)))


def _among(buffers: Iterable[Buffer], others: frozenset[Buffer]) -> frozenset[str]:
    """The names of the storage of those buffers that may alias one of the others."""
    return frozenset(buffer.memory.name for buffer in buffers if is_among(buffer, others))
