"""T.sync_grid(): what is between two barriers of the grid becomes a kernel of its own.

Kernels of one stream run one after the other, and each sees what the one before wrote: this is the barrier's promise.
It needs no grid that is co-resident on the device. What a block holds in registers and in shared memory ends with its
kernel, so that only what is written again may be used again. Where more is used, or a barrier is in a loop or
branch, the kernel stays whole, and its blocks wait for one another.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from tile2cu.analysis.accesses import variables
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.effects import effects_of
from tile2cu.analysis.lifetimes import FirstUse, buffers_in, first_use
from tile2cu.analysis.sync_calls import is_grid_barrier
from tile2cu.analysis.uses import declares, roots_written
from tile2cu.core.expr import Call, Expr, Load, Role, Var, walk, works_among_threads
from tile2cu.core.program import (
    Assign,
    Atomic,
    Buffer,
    Declare,
    Launch,
    Let,
    Scope,
    Stmt,
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
    written = roots_written(before)
    assigned = {stmt.var for stmt in walk_stmts(before) if isinstance(stmt, Assign)}
    kept: list[Buffer | Var] = [tile for tile in launch.tiles if tile.of is None and tile in written]
    kept += [var for var in assigned if var.role is Role.MUTABLE]
    return all(first_use(part, what) is not FirstUse.READ for what in kept)


def _values_for(part: tuple[Stmt, ...], before: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
    """The values and variables of earlier stretches that a stretch needs, computed again; None if one differs then."""
    found = effects_of(part)
    needed = (found.scalars_read | found.scalars_written) - {var for stmt in walk_stmts(part) for var in declares(stmt)}
    written = roots_written(before)
    again: list[Stmt] = []
    for stmt in reversed(before):
        if isinstance(stmt, Let | Declare) and stmt.var in needed:
            value = stmt.value if isinstance(stmt, Let) else stmt.init
            if value is not None and not _is_same_again(value, written):
                return None
            needed |= variables(*() if value is None else (value,))
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
    return buffer.scope is not Scope.GLOBAL or is_among(buffer, written)


def _tiles_of(launch: Launch) -> tuple[Buffer, ...]:
    """The tiles that a stretch uses, and those whose bits they show."""
    used = buffers_in(launch.body)
    return tuple(tile for tile in launch.tiles if tile.memory in used)
