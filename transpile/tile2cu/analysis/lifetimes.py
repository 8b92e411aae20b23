"""Liveness of shared tiles."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from tile2cu.analysis.accesses import buffers_read, overwrites
from tile2cu.core.expr import Address, Expr, Load, walk
from tile2cu.core.program import Buffer, Gemm, Launch, Loop, Range, Region, Stmt, While, bodies

Body = tuple[Stmt, ...]


@dataclass(frozen=True)
class Lifetime:
    """The first and last statement that use a tile, as positions in program order, and their lines."""

    first: int
    last: int
    first_line: int
    last_line: int


class Lifetimes:
    """The lifetimes of a launch's shared tiles. `ahead` are those that a loop (by id) prefetches for later iterations.

    A tile that every iteration of a loop begins by overwriting is not live between iterations, unless it is prefetched.
    """

    def __init__(self, launch: Launch, ahead: Mapping[int, tuple[Buffer, ...]]) -> None:
        self.launch, self.ahead = launch, ahead
        self._positions: dict[int, tuple[int, int]] = {}
        self._used: dict[int, frozenset[Buffer]] = {}
        self._number(launch.body, 0)

    def of(self, tile: Buffer) -> Lifetime | None:
        """The lifetime of a tile; None where nothing uses it."""
        found = self._in_body(tile, self.launch.body, in_loop=False)
        if found is None:
            return None
        first, last = found
        return Lifetime(self._positions[id(first)][0], self.end(last), first.span.line, last.span.line)

    def end(self, stmt: Stmt) -> int:
        """The position of the last statement in it."""
        return self._positions[id(stmt)][1]

    def _in_body(self, tile: Buffer, body: Body, *, in_loop: bool) -> tuple[Stmt, Stmt] | None:
        """The first and the last statement that use the tile; None where it is live between iterations, or unused.

        Where one loop or branch alone uses the tile, they are statements in it.
        """
        users = [stmt for stmt in body if tile in self._used[id(stmt)]]
        if not users:
            return None
        first = users[0]
        if len(users) == 1:
            inner = self._inside(tile, first, in_loop=in_loop)
            if inner is not None:
                return inner
        if in_loop and not self._begins_by_writing(tile, first):
            return None
        return first, users[-1]

    def _begins_by_writing(self, tile: Buffer, stmt: Stmt) -> bool:
        """Whether the tile is dead before the statement."""
        return tile in self.ahead.get(id(stmt), ()) or begins_by_writing(stmt, tile)

    def _inside(self, tile: Buffer, stmt: Stmt, *, in_loop: bool) -> tuple[Stmt, Stmt] | None:
        """The same in the only one of a statement's bodies that uses the tile."""
        iterations = isinstance(stmt, Loop | While)
        using = [body for body in bodies(stmt) if any(tile in self._used[id(part)] for part in body)]
        if len(using) != 1 or tile in frozenset(_own_buffers(stmt)) or tile in self.ahead.get(id(stmt), ()):
            return None
        return self._in_body(tile, using[0], in_loop=in_loop or iterations)

    def _number(self, body: Body, start: int) -> int:
        """Numbers the statements in program order; returns the next number."""
        for stmt in body:
            end = start
            for part in bodies(stmt):
                end = self._number(part, end + 1) - 1
            self._positions[id(stmt)] = (start, end)
            self._used[id(stmt)] = frozenset(buffers_in(stmt))
            start = end + 1
        return start


def begins_by_writing(stmt: Stmt, tile: Buffer) -> bool:
    """Whether the statement overwrites the tile without reading it."""
    read = {stmt.a.buffer, stmt.b.buffer} if isinstance(stmt, Gemm) else buffers_read(stmt)
    return tile not in read and overwrites(stmt, tile)


def buffers_in(part: object) -> Iterator[Buffer]:
    """Every tile and tensor that a statement names, with all below it; for a view, its storage."""
    match part:
        case Buffer():
            yield part.memory
        case Expr():
            yield from (buffer.memory for each in walk(part) if (buffer := _buffer_of(each)) is not None)
        case tuple():
            for each in part:
                yield from buffers_in(each)
        case Stmt() | Region() | Range():
            for field in fields(part):
                yield from buffers_in(getattr(part, field.name))
        case _:
            pass


def _buffer_of(expr: Expr) -> Buffer | None:
    """The buffer that an expression itself reads, or takes the address of."""
    found = expr.buffer if isinstance(expr, Load | Address) else None
    return found if isinstance(found, Buffer) else None


def _own_buffers(stmt: Stmt) -> Iterator[Buffer]:
    """The buffers of a statement's own expressions: its condition, its bounds."""
    for field in fields(stmt):
        part = getattr(stmt, field.name)
        if not any(part is body for body in bodies(stmt)):
            yield from buffers_in(part)
