"""Loops that read elements of a fragment which other iterations of the same loop write.

The iterations of T.Parallel are independent: one reads the value of an element before the loop, unless it wrote the
element itself.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from tile2cu.analysis.accesses import parts_of
from tile2cu.analysis.control import declared_in
from tile2cu.analysis.uses import statements
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.expr import Binary, Call, Expr, Load, Role, Var, binary, joined, static_value, walk
from tile2cu.core.program import Buffer, Loop, Parallel, Stmt, Store, While
from tile2cu.core.rebuild import Body, Kind, with_bodies, with_own_expressions
from tile2cu.core.record import Record

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

    After its own store an iteration may read its own value: where the indices do not decide, it compares them. From
    another buffer `after`, which begins with the values before the loop, it reads elements that it stores, and those
    that no other iteration stores.
    Errors: T2C-L014 where that value would be in other threads, or may be another iteration's.
    """
    written = indices_written(op, tile)
    own = held_index(written, op) if after is tile else None
    reader = _Reader(op, tile, before, after, written, own, declared_in(op.body))
    return replace(op, body=reader.body(op.body, _Stored()))


class _Stored(Record, frozen=True):
    """The stores of an iteration: whether there may be any above a statement, and indices of certain ones, with its."""

    any: bool = False
    certain: frozenset[Place] = frozenset()


class _Reader(Record, frozen=True):
    op: Parallel
    tile: Buffer
    before: Buffer
    after: Buffer
    written: frozenset[Place]
    own: Place | None  # of the iteration, which reads and writes it in place
    changing: set[Var]  # within an iteration

    def body(self, body: Body, stored: _Stored) -> Body:
        """The statements; `stored` is what the iteration stored to the tile before the first of them."""
        found: list[Stmt] = []
        for stmt in body:
            found.append(self.statement(stmt, stored))
            stored = replace(stored, any=stored.any or any(_stores((stmt,), self.tile)))
            if isinstance(stmt, Store) and stmt.buffer is self.tile:
                stored = replace(stored, certain=stored.certain | {stmt.indices})
        return tuple(found)

    def statement(self, stmt: Stmt, stored: _Stored) -> Stmt:
        if isinstance(stmt, Store) and stmt.buffer is self.tile:
            own = replace(stored, certain=stored.certain | {stmt.indices})  # no other iteration stores it, then
            return replace(self.read(stmt, own), buffer=self.after)
        if isinstance(stmt, Loop | While):
            stored = replace(stored, any=stored.any or any(_stores((stmt,), self.tile)))
        return with_bodies(self.read(stmt, stored), lambda body: self.body(body, stored))

    def read(self, stmt: Kind, stored: _Stored) -> Kind:
        """The statement, with each element that it reads of the tile replaced by the tile that holds it."""

        def change(expr: Expr) -> Expr | None:
            if not isinstance(expr, Load) or expr.buffer is not self.tile or expr.indices == self.own:
                return None
            before = replace(expr, buffer=self.before)
            if not stored.any or all(self.disjoint(expr.indices, position) for position in self.written):
                return before
            if self.own is None:
                if self.stores(expr.indices, stored) or self.is_own(expr.indices):
                    return replace(expr, buffer=self.after)
                raise self.unknown(stmt)
            pairs = [(at, own) for at, own in zip(expr.indices, self.own, strict=True) if at != own]
            same = joined("and", (binary("==", at, own) for at, own in pairs))
            assert same is not None
            return Call(expr.dtype, "if_then_else", (same, replace(expr, indices=self.own), before))

        return with_own_expressions(stmt, change)

    def disjoint(self, one: Place, other: Place) -> bool:
        """Whether two indices certainly differ throughout an iteration: by a constant, in some dimension."""
        for a, b in zip(one, other, strict=True):
            (base, offset), (base_of_other, offset_of_other) = _split(a), _split(b)
            fixed = base is None or self.changing.isdisjoint(walk(base))
            if base == base_of_other and fixed and offset != offset_of_other:
                return True
        return False

    def stores(self, index: Place, stored: _Stored) -> bool:
        """Whether the iteration certainly stores the element, before the statement or by it."""
        mutable = any(isinstance(part, Var) and part.role is Role.MUTABLE for each in index for part in walk(each))
        return index in stored.certain and not mutable

    def is_own(self, index: Place) -> bool:
        """Whether no other iteration stores the element: each loop variable is an index of it, as of all stores."""
        repeated = {var for var, extent in zip(self.op.vars, self.op.extents, strict=True) if static_value(extent) != 1}
        alike = {at for at, *others in zip(index, *self.written, strict=True) if all(at == other for other in others)}
        return repeated <= alike

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
