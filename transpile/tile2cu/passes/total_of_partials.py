"""Totals of partial sums that a loop adds to a fragment: the sum of all values, whichever element takes each."""

from collections.abc import Iterator

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_used
from tile2cu.analysis.control import steps
from tile2cu.analysis.prelude import block_of
from tile2cu.analysis.uses import statements, users
from tile2cu.core.expr import Expr, static_value
from tile2cu.core.program import Atomic, Buffer, Fill, Launch, Parallel, Reduce, Reduction, Scope, Stmt, Store
from tile2cu.core.rebuild import Body, with_instead
from tile2cu.core.record import Record
from tile2cu.passes.tiles import fresh


def totals_of_partials(launch: Launch) -> Launch:
    """The launch without fragments of partial sums of which only the total is used.

        T.clear(partials)                                  for i, j in T.Parallel(64, 64):
        for i, j in T.Parallel(64, 64):                        values[i, j] = A[i, j]
            partials[i // 2, j % 4] += A[i, j]      is     T.reduce_sum(values, rows, dim=1)
        T.reduce_sum(T.reshape(partials, (128,)),          T.reduce_sum(rows, total, dim=0)
                     total, dim=0)

    The index decides which thread holds an element of `partials`, so that the loop would add by atomics on shared
    memory. In the other form each thread sums the values of its own iterations. These are other partial sums, which in
    a narrow type may overflow where the user's do not.
    """
    instead: dict[int, Body] = {}
    tiles: list[Buffer] = []
    found = list(_totals(launch))
    for total in found:
        instead |= total.replaced(tiles, launch)
    if not instead:
        return launch
    body = with_instead(launch.body, instead)
    used = {buffer for stmt in steps(body) for buffer in buffers_used(stmt)}
    kept = tuple(tile for tile in launch.tiles if tile.scope is not Scope.FRAGMENT or tile in used)
    return replace(launch, body=body, tiles=(*kept, *tiles))


class _Total(Record, frozen=True):
    """The statements of a body that clear partial sums, add to them, and reduce all of them to one number."""

    clear: Fill
    loop: Parallel
    update: Atomic
    reduce: Reduce

    def replaced(self, tiles: list[Buffer], launch: Launch) -> dict[int, Body]:
        """What takes the place of each statement, by its id; `tiles` gets the fragments that it needs."""
        *outer, first = range(len(self.loop.vars) - 1, -1, -1)
        values = self._tile("values", self.loop.extents, tiles, launch)
        store = Store(buffer=values, indices=self.loop.vars, value=self.update.value, span=self.update.span)
        comments = (*self.clear.comments, *self.loop.comments)
        stmts: list[Stmt] = [replace(self.loop, body=(store,), comments=comments)]
        source = values
        for dim in outer:
            sums = self._tile("sums", source.shape[:dim], tiles, launch)
            stmts.append(Reduce(kind=Reduction.SUM, src=source, dst=sums, dim=dim, span=self.loop.span))
            source = sums
        return {
            id(self.clear): (),
            id(self.loop): tuple(stmts),
            id(self.reduce): (replace(self.reduce, src=source, dim=first),),
        }

    def _tile(self, suffix: str, shape: tuple[Expr, ...], tiles: list[Buffer], launch: Launch) -> Buffer:
        partials = self.update.buffer
        name = fresh(replace(launch, tiles=(*launch.tiles, *tiles)), f"{partials.name}_{suffix}")
        tiles.append(replace(partials, name=name, shape=shape, comment=""))
        return tiles[-1]


def _totals(launch: Launch) -> Iterator[_Total]:
    """The totals of a launch."""
    partials = {update.buffer.memory for update in launch.statements if isinstance(update, Atomic)}
    for clear in statements(launch.body, Fill):
        if clear.dst.buffer.memory in partials and clear.dst.buffer.scope is Scope.FRAGMENT and clear.dst.whole:
            total = _total(clear, block_of(launch.body, clear), launch)
            if total is not None:
                yield total


def _total(clear: Fill, body: Body, launch: Launch) -> _Total | None:
    partials = clear.dst.buffer
    uses = users(launch.body, partials)
    match uses:
        case [Fill(), Parallel(body=(Atomic(kind=Reduction.SUM) as update,)) as loop, Reduce() as reduce]:
            same_body = all(any(stmt is use for stmt in body) for use in uses)
            is_total = reduce.kind is Reduction.SUM and reduce.clear and reduce.src.rank == 1
            of_the_values = reduce.src.dtype == update.buffer.dtype  # not of their bits as another type
            if (
                uses[0] is clear
                and static_value(clear.value) == 0
                and same_body
                and is_total
                and of_the_values
                and reduce.dst.static_shape == (1,)
                and reduce.dst.memory is not partials
                and update.previous is None
                and all(static_value(extent) is not None for extent in loop.extents)
                and partials.dtype.has_partial_sums
            ):
                return _Total(clear, loop, update, reduce)
    return None
