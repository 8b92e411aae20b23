"""Loops that read elements of a fragment which other iterations of the same loop write.

The iterations of T.Parallel are independent: one reads the value of an element before the loop, unless it wrote the
element itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tile2cu.analysis.accesses import parts_of
from tile2cu.analysis.uses import statements
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.expr import Binary, Call, Expr, Load, binary, joined, static_value
from tile2cu.core.program import Buffer, Loop, Parallel, Stmt, Store, While
from tile2cu.core.rebuild import Body, Kind, with_bodies, with_own_expressions

Place = tuple[Expr, ...]


def indices_read(op: Parallel, tile: Buffer) -> frozenset[Place]:
    """The indices at which the loop's expressions read the tile, without those of augmented assignments."""
    parts = parts_of(statements(op.body, Stmt))
    return frozenset(part.indices for part in parts if isinstance(part, Load) and part.buffer is tile)


def held_index(positions: frozenset[Place], op: Parallel) -> Place | None:
    """The index, if it is one, of loop variables alone, in order: one thread holds it throughout the loop."""
    position = next(iter(positions)) if len(positions) == 1 else ()
    return position if position and position == tuple(var for var in op.vars if var in position) else None


def indices_written(op: Parallel, tile: Buffer) -> frozenset[Place]:
    """The indices at which the loop writes the tile."""
    return frozenset(stmt.indices for stmt in statements(op.body, Store) if stmt.buffer is tile)


def reading_before(op: Parallel, tile: Buffer, before: Buffer, after: Buffer) -> Parallel:
    """The loop that reads the value of `tile` before it in `before`, and writes to `after`.

    After its own store an iteration may read its own value: where the indices do not decide, it compares them.
    Errors: T2C-L014 where that value would be in other threads.
    """
    written = indices_written(op, tile)
    own = held_index(written, op) if after is tile else None
    return replace(op, body=_Reader(op, tile, before, after, written, own).body(op.body, False))


@dataclass(frozen=True)
class _Reader:
    op: Parallel
    tile: Buffer
    before: Buffer
    after: Buffer
    written: frozenset[Place]
    own: Place | None  # of the iteration, which reads and writes it in place

    def body(self, body: Body, stored: bool) -> Body:
        """The statements, the first of which is after a store to the tile, or not."""
        found: list[Stmt] = []
        for stmt in body:
            found.append(self.statement(stmt, stored))
            stored = stored or any(_stores((stmt,), self.tile))
        return tuple(found)

    def statement(self, stmt: Stmt, stored: bool) -> Stmt:
        if isinstance(stmt, Store) and stmt.buffer is self.tile:
            return replace(self.read(stmt, stored), buffer=self.after)
        stored = stored or (isinstance(stmt, Loop | While) and any(_stores((stmt,), self.tile)))
        return with_bodies(self.read(stmt, stored), lambda body: self.body(body, stored))

    def read(self, stmt: Kind, stored: bool) -> Kind:
        """The statement, with each element that it reads of the tile replaced by the tile that holds it."""

        def change(expr: Expr) -> Expr | None:
            if not isinstance(expr, Load) or expr.buffer is not self.tile or expr.indices == self.own:
                return None
            before = replace(expr, buffer=self.before)
            if not stored or all(_disjoint(expr.indices, position) for position in self.written):
                return before
            if self.own is None:
                raise self.unknown(stmt)
            pairs = [(at, own) for at, own in zip(expr.indices, self.own, strict=True) if at != own]
            same = joined("and", (binary("==", at, own) for at, own in pairs))
            assert same is not None
            return Call(expr.dtype, "if_then_else", (same, replace(expr, indices=self.own), before))

        return with_own_expressions(stmt, change)

    def unknown(self, stmt: Stmt) -> Tile2CuError:
        name = self.tile.name
        return Tile2CuError(
            "T2C-L014",
            f"the element read here of `{name}` may be one that the same iteration has written to another thread",
            stmt.span,
            notes=(Note(f"this loop writes `{name}` in other threads", self.op.span),),
            help="read it in a second T.Parallel loop, or above the store",
        )


def _stores(body: Body, tile: Buffer) -> Iterator[Store]:
    """The stores to the tile below the statements."""
    return (stmt for stmt in statements(body, Store) if stmt.buffer is tile)


def _disjoint(one: Place, other: Place) -> bool:
    """Whether two indices certainly differ: by a constant, in some dimension."""
    for a, b in zip(one, other, strict=True):
        (base, offset), (base_of_other, offset_of_other) = _split(a), _split(b)
        if base == base_of_other and offset != offset_of_other:
            return True
    return False


def _split(index: Expr) -> tuple[Expr | None, int | float]:
    """An index as a term and a constant that is added to it."""
    number = static_value(index)
    if number is not None:
        return None, number
    if isinstance(index, Binary) and index.op in ("+", "-"):
        offset = static_value(index.rhs)
        if offset is not None:
            return index.lhs, offset if index.op == "+" else -offset
    return index, 0
