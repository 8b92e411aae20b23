"""T.sync_grid(): what is between two barriers of the grid becomes a kernel of its own.

Kernels of one stream run one after the other, and each sees what the one before wrote: this is the barrier's promise.
It needs no grid that is co-resident on the device. What a block holds in registers and in shared memory ends with its
kernel, so that only what is written again may be used again. Where more is used, or a barrier is in a loop or
branch, the kernel stays whole, and its blocks wait for one another.
"""

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace

from tile2cu.analysis.accesses import buffers_read, buffers_written, overwrites
from tile2cu.analysis.sync_calls import is_grid_barrier
from tile2cu.core.expr import Address, Call, Expr, Load, Role, Var, walk, works_among_threads
from tile2cu.core.program import (
    Assign,
    Atomic,
    Buffer,
    Declare,
    If,
    Launch,
    Let,
    Loop,
    Parallel,
    Range,
    Region,
    Scope,
    Stmt,
    While,
    walk_stmts,
)

_ABOUT = "After T.sync_grid(): a kernel of its own, which starts when all blocks of the one before are done"


def phases(launch: Launch) -> tuple[Launch, ...]:
    """The launch, or one for each stretch between its barriers of the grid; the launch as it is where these need it."""
    barriers = [stmt for stmt in launch.statements if is_grid_barrier(stmt)]
    if not all(any(stmt is part for part in launch.body) for stmt in barriers):
        return (launch,)
    parts = list(_parts(launch.body))
    found = [replace(launch, body=parts[0])]
    for number, (part, barrier) in enumerate(zip(parts[1:], barriers, strict=True), 1):
        before = tuple(stmt for earlier in parts[:number] for stmt in earlier)
        again = _values_for(part, before) if _writes_again(launch, before, part) else None
        if again is None:
            return (launch,)
        found.append(replace(launch, body=(*again, *part), comments=(_ABOUT,), span=barrier.span))
    return tuple(replace(each, tiles=_tiles_of(each)) for each in found if each.body) if barriers else (launch,)


def _parts(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    part: list[Stmt] = []
    for stmt in body:
        if is_grid_barrier(stmt):
            yield tuple(part)
            part = []
        else:
            part.append(stmt)
    yield tuple(part)


def _writes_again(launch: Launch, before: tuple[Stmt, ...], part: tuple[Stmt, ...]) -> bool:
    """Whether what was written before a barrier is written after it before it is read there."""
    written = {buffer.memory for stmt in walk_stmts(before) for buffer in buffers_written(stmt)}
    assigned = {stmt.var for stmt in walk_stmts(before) if isinstance(stmt, Assign)}
    kept: list[Buffer | Var] = [tile for tile in launch.tiles if tile.of is None and tile in written]
    kept += [var for var in assigned if var.role is Role.MUTABLE]
    return all(_first_use(part, what) != "read" for what in kept)


def _first_use(body: tuple[Stmt, ...], what: Buffer | Var) -> str:
    """What happens first to a tile or variable: "read" or "written"; nothing for certain where it is empty."""
    for stmt in body:
        found = _use(stmt, what)
        if found:
            return found
    return ""


def _use(stmt: Stmt, what: Buffer | Var) -> str:
    match stmt:
        case If():
            if _names(what, _own(stmt)):
                return "read"
            arms = {_first_use(stmt.then, what), _first_use(stmt.orelse, what)}
            return "read" if "read" in arms else "written" if arms == {"written"} else ""
        case Loop() | While():  # which may have no iteration
            own = _names(what, _own(stmt)) or _first_use(stmt.body, what) == "read"
            return "read" if own else ""
        case Assign() if stmt.var == what and not stmt.op and not _names(what, (stmt.value,)):
            return "written"
        case Declare() if stmt.var == what:
            return "written"
        case _ if isinstance(what, Buffer) and overwrites(stmt, what) and what not in _memory(buffers_read(stmt)):
            return "written"
        case _:
            return "read" if _names(what, (stmt,)) else ""


def _memory(buffers: Iterable[Buffer]) -> set[Buffer]:
    return {buffer.memory for buffer in buffers}


def _own(stmt: If | Loop | While) -> tuple[object, ...]:
    return (stmt.start, stmt.stop, stmt.step) if isinstance(stmt, Loop) else (stmt.condition,)


def _names(what: Buffer | Var, parts: Iterable[object]) -> bool:
    return any(found == what for part in parts for found in _mentioned(part))


def _values_for(part: tuple[Stmt, ...], before: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
    """The values and variables of earlier stretches that a stretch needs, computed again; None if one differs then."""
    made = {stmt.var for stmt in walk_stmts(part) if isinstance(stmt, Let | Declare | Loop)}
    made |= {var for stmt in walk_stmts(part) if isinstance(stmt, Parallel) for var in stmt.vars}
    made |= {stmt.previous for stmt in walk_stmts(part) if isinstance(stmt, Atomic) and stmt.previous is not None}
    needed = {found for found in _mentioned(part) if isinstance(found, Var)} - made
    written = {buffer.memory for stmt in walk_stmts(before) for buffer in buffers_written(stmt)}
    again: list[Stmt] = []
    for stmt in reversed(before):
        if isinstance(stmt, Let | Declare) and stmt.var in needed:
            value = stmt.value if isinstance(stmt, Let) else stmt.init
            if value is not None and not _is_same_again(value, written):
                return None
            needed |= {found for found in _mentioned(value) if isinstance(found, Var)}
            again.append(stmt)
    lost = {stmt.previous for stmt in walk_stmts(before) if isinstance(stmt, Atomic)} & needed
    return None if lost else tuple(reversed(again))


def _is_same_again(value: Expr, written: set[Buffer]) -> bool:
    """Whether an expression has the same value when the next kernel computes it."""
    return not works_among_threads(value) and not any(
        (isinstance(part, Load) and isinstance(part.buffer, Buffer) and _may_change(part.buffer, written))
        or (isinstance(part, Call) and part.function.startswith(("::", "random")))
        or (isinstance(part, Var) and part.role is Role.MUTABLE)
        for part in walk(value)
    )


def _may_change(buffer: Buffer, written: set[Buffer]) -> bool:
    return buffer.scope is not Scope.GLOBAL or buffer.memory in written


def _tiles_of(launch: Launch) -> tuple[Buffer, ...]:
    """The tiles that a stretch uses, and those whose bits they show."""
    used = {found for found in _mentioned(launch.body) if isinstance(found, Buffer)}
    used |= {buffer.memory for buffer in used}
    return tuple(tile for tile in launch.tiles if tile in used)


def _mentioned(part: object) -> Iterator[Buffer | Var]:
    """All buffers and variables that statements or expressions name."""
    match part:
        case Buffer():
            yield part
        case Expr():
            for each in walk(part):
                if isinstance(each, Var):
                    yield each
                elif isinstance(each, Load | Address) and isinstance(each.buffer, Buffer):
                    yield each.buffer
        case tuple():
            for item in part:
                yield from _mentioned(item)
        case Stmt() | Region() | Range():
            for field in fields(part):
                yield from _mentioned(getattr(part, field.name))
        case _:
            pass
