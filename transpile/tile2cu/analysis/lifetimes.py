"""Liveness of shared tiles."""

from collections.abc import Iterator, Mapping
from enum import Enum

from tile2cu.analysis.accesses import buffers_read, overwrites, read_by_itself
from tile2cu.analysis.control import steps
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.effects import own_effects
from tile2cu.analysis.sync_calls import is_cluster_barrier
from tile2cu.core.expr import Address, Expr, Load, Var, walk
from tile2cu.core.fields import fields_of
from tile2cu.core.memo import kept
from tile2cu.core.program import (
    Break,
    Buffer,
    Continue,
    Copy,
    If,
    Launch,
    Loop,
    Range,
    Region,
    Stmt,
    While,
    bodies,
    walk_stmts,
)
from tile2cu.core.record import Record

Body = tuple[Stmt, ...]


class Lifetime(Record, frozen=True):
    """The first and last statement of a tile's use, as positions in program order, and their lines."""

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
        self._number(launch.body, 0)

    def of(self, tile: Buffer) -> Lifetime | None:
        """The lifetime of a tile; None where nothing uses it."""
        found = self._of_sent(tile) or self._in_body(tile, self.launch.body, in_loop=False)
        if found is None:
            return None
        first, last = found
        return Lifetime(self._positions[id(first)][0], self.end(last), first.span.line, last.span.line)

    def end(self, stmt: Stmt) -> int:
        """The position of the last statement in it."""
        return self._positions[id(stmt)][1]

    def _of_sent(self, tile: Buffer) -> tuple[Stmt, Stmt] | None:
        """The same for a tile that other blocks of the cluster write, when they may do so; None for others.

        They may from the cluster's barrier on that precedes its use, until the next one after their last write.
        """
        body = self.launch.body
        users = [place for place, stmt in enumerate(body) if tile in _named_by(stmt)]
        sent = [place for place in users if any(_sends_to(stmt, tile) for stmt in walk_stmts((body[place],)))]
        if not sent:
            return None
        barriers = [place for place, stmt in enumerate(body) if is_cluster_barrier(stmt)]
        first = max((place for place in barriers if place < users[0]), default=0)
        ended = min((place for place in barriers if place > sent[-1]), default=len(body) - 1)
        return body[first], body[max(ended, users[-1])]

    def _in_body(self, tile: Buffer, body: Body, *, in_loop: bool) -> tuple[Stmt, Stmt] | None:
        """The first and the last statement that use the tile; None where it is live between iterations, or unused.

        Where one loop or branch alone uses the tile, they are statements in it.
        """
        users = [stmt for stmt in body if tile in _named_by(stmt)]
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
        using = [body for body in bodies(stmt) if any(tile in _named_by(part) for part in body)]
        if len(using) != 1 or tile in _own_buffers(stmt) or tile in self.ahead.get(id(stmt), ()):
            return None
        return self._in_body(tile, using[0], in_loop=in_loop or iterations)

    def _number(self, body: Body, start: int) -> int:
        """Numbers the statements in program order; returns the next number."""
        for stmt in body:
            end = start
            for part in bodies(stmt):
                end = self._number(part, end + 1) - 1
            self._positions[id(stmt)] = (start, end)
            start = end + 1
        return start


def _sends_to(stmt: Stmt, tile: Buffer) -> bool:
    """Whether the statement writes the tile of another block."""
    return isinstance(stmt, Copy) and stmt.block is not None and stmt.dst.buffer.memory is tile


def begins_by_writing(stmt: Stmt, tile: Buffer) -> bool:
    """Whether the statement overwrites the tile without reading it, under any name."""
    return not is_among(tile, buffers_read(stmt)) and overwrites(stmt, tile)


class FirstUse(Enum):
    """What first happens to the old value of a tile or a variable."""

    READ = "read"
    OVERWRITTEN = "overwritten"


def first_use(body: Body, what: Buffer | Var) -> FirstUse | None:
    """The first access of a body to the old value: a read, or else, on all paths, an overwrite."""
    falls_through = True  # no break or continue leaves the body before
    for stmt in body:
        own, uses = own_effects(stmt), [first_use(below, what) for below in bodies(stmt)]
        read = what in own.scalars_read if isinstance(what, Var) else is_among(what, read_by_itself(stmt))
        if read or FirstUse.READ in uses:
            return FirstUse.READ
        everywhere = isinstance(stmt, If) and uses.count(FirstUse.OVERWRITTEN) == len(uses)
        replaced = what in own.scalars_written if isinstance(what, Var) else overwrites(stmt, what)
        falls_through &= not any(isinstance(step, Break | Continue) for step in steps((stmt,)))
        if falls_through and (everywhere or replaced):
            return FirstUse.OVERWRITTEN
    return None


def buffers_in(body: Body) -> frozenset[Buffer]:
    """Every tile and tensor that statements name, with all below them; for a view, its storage."""
    return frozenset[Buffer]().union(*map(_named_by, body))


@kept
def _named_by(stmt: Stmt) -> frozenset[Buffer]:
    return _own_buffers(stmt).union(*map(buffers_in, bodies(stmt)))


def _buffers_of(part: object) -> Iterator[Buffer]:
    match part:
        case Buffer():
            yield part.memory
        case Expr():
            yield from (buffer.memory for each in walk(part) if (buffer := _buffer_of(each)) is not None)
        case tuple():
            for each in part:
                yield from _buffers_of(each)
        case Stmt() | Region() | Range():
            for each in fields_of(part).values():
                yield from _buffers_of(each)
        case _:
            pass


def _buffer_of(expr: Expr) -> Buffer | None:
    """The buffer that an expression itself reads, or takes the address of."""
    found = expr.buffer if isinstance(expr, Load | Address) else None
    return found if isinstance(found, Buffer) else None


@kept
def _own_buffers(stmt: Stmt) -> frozenset[Buffer]:
    """The buffers of a statement's own expressions: its condition, its bounds."""
    nested = bodies(stmt)
    own = tuple(part for part in fields_of(stmt).values() if not any(part is body for body in nested))
    return frozenset(_buffers_of(own))
