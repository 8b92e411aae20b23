"""Per-row values of a GEMM: prefetched one iteration earlier, so that no MMA waits for memory."""

from collections.abc import Iterator

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_read, buffers_written, covers
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.prelude import before, behind
from tile2cu.analysis.uses import has, pipelined_loops, roots_written, statements
from tile2cu.core.expr import Expr, Load, Role, Var, binary, may_trap, substitute, walk
from tile2cu.core.program import (
    Assign,
    Buffer,
    Continue,
    Declare,
    Gemm,
    Launch,
    Let,
    Loop,
    Parallel,
    Scope,
    Store,
)
from tile2cu.core.rebuild import Body, under_comments, with_instead
from tile2cu.core.record import Record
from tile2cu.passes.dead_code import without_unused
from tile2cu.passes.thread_local_rows import reads_by_row
from tile2cu.passes.tiles import fresh

PREFETCHED_ROWS = "rewrite.vector.prefetched"
_ABOUT = f"For the next iteration, during this one's MMAs  [{PREFETCHED_ROWS}]"
_FIRST = "For the first iteration"


def prefetched_rows(launch: Launch) -> Launch | None:
    """The launch whose pipelined iterations prefetch the per-row values of their GEMM; None where none does.

        for k in T.Pipelined(n, num_stages=3):              for i in T.Parallel(M):
            for i in T.Parallel(M):                             ahead[i] = scales[i, 0]
                scale[i] = scales[i, k] * 2          is     for k in T.Pipelined(n, num_stages=3):
            T.gemm(A_shared, B_shared, C_local)                 for i in T.Parallel(M):
            for i, j in T.Parallel(M, N):                           scale[i] = ahead[i] * 2
                sums[i, j] += C_local[i, j] * scale[i]              ahead[i] = scales[i, k + 1]

    Instructions issue in order: a multiplication with a value that is loaded in the same iteration stalls the warp
    until the load returns, and the MMAs after it. Past the end of a tensor the last iteration's loads return zero.
    """
    found = next(_found(launch), None) if launch.groups == 1 else None
    if found is None:
        return None
    loop, rows = found
    ahead = _Prefetched.of(launch, loop, rows)
    following = ahead.next()
    iteration = with_instead(loop.body, {id(rows): (ahead.used(), *following)})
    whole = (*ahead.first(), replace(loop, body=iteration))
    body = with_instead(launch.body, {id(loop): whole})
    return without_unused(replace(launch, tiles=(*launch.tiles, *ahead.tiles.values()), body=body))


class _Prefetched(Record, frozen=True):
    """The next iteration's elements: a fragment where each row has its own, else a variable."""

    loop: Loop
    rows: Parallel
    values: tuple[Expr, ...]  # stored by `rows`
    tiles: dict[Load, Buffer]
    scalars: dict[Load, Var]

    @classmethod
    def of(cls, launch: Launch, loop: Loop, rows: Parallel) -> "_Prefetched":
        values = _inlined(rows, loop)
        loads = dict.fromkeys(part for value in values for part in walk(value) if isinstance(part, Load))
        tiles: dict[Load, Buffer] = {}
        scalars: dict[Load, Var] = {}
        named = launch
        for load in loads:
            assert isinstance(load.buffer, Buffer), "a load reads a buffer"
            name = fresh(named, f"{load.buffer.name}_ahead")
            tile = Buffer(name=name, shape=rows.extents, dtype=load.dtype, scope=Scope.FRAGMENT, span=rows.span)
            named = replace(named, tiles=(*named.tiles, tile))
            if {*rows.vars} & {part for index in load.indices for part in walk(index)}:
                tiles[load] = tile
            else:
                scalars[load] = Var(load.dtype, name, Role.MUTABLE)
        return cls(loop, rows, values, tiles, scalars)

    def first(self) -> Body:
        """The first iteration's values, before the loop."""
        scalars = self.scalars.items()
        at = self.loop.start
        declared = tuple(Declare(var=var, init=self._at(load, at), span=self.rows.span) for load, var in scalars)
        return self._about(_FIRST, (*declared, *self._rows_at(at)))

    def next(self) -> Body:
        """The loads of the next iteration's values."""
        scalars = self.scalars.items()
        at = binary("+", self.loop.var, self.loop.step)
        assigned = tuple(Assign(var=var, value=self._at(load, at), span=self.rows.span) for load, var in scalars)
        return self._about(_ABOUT, (*assigned, *self._rows_at(at)))

    def _at(self, load: Load, iteration: Expr) -> Expr:
        return substitute(load, {self.loop.var: iteration})

    def _rows_at(self, iteration: Expr) -> Body:
        """One loop that fills all fragments."""
        rows, tiles = self.rows, self.tiles.items()
        stores = tuple(
            Store(buffer=tile, indices=rows.vars, value=self._at(load, iteration), span=rows.span)
            for load, tile in tiles
        )
        return (replace(rows, body=stores),) if stores else ()

    def _about(self, comment: str, stmts: Body) -> Body:
        return under_comments(replace(self.rows, comments=(comment,), trailing=""), stmts)

    def used(self) -> Parallel:
        """The iteration's values, from the prefetched elements."""
        held: dict[Expr, Expr] = dict(self.scalars.items())
        held.update((load, Load(load.dtype, tile, self.rows.vars)) for load, tile in self.tiles.items())
        pairs = zip(statements(self.rows.body, Store), self.values, strict=True)
        return replace(self.rows, body=tuple(replace(store, value=substitute(value, held)) for store, value in pairs))


def _found(launch: Launch) -> Iterator[tuple[Loop, Parallel]]:
    """Loops whose iterations compute per-row values of a GEMM from tensors that the kernel does not change."""
    changed = roots_written(launch.body)
    for loop in pipelined_loops(launch):
        if has(loop.body, Continue):
            continue  # an iteration that may end before it has loaded
        for rows in statements(loop.body, Parallel, below=False):
            if len(rows.vars) == 1 and _is_loaded(rows, loop, changed):
                after = behind(loop.body, rows)
                mmas = {op.c.buffer for op in statements(after, Gemm, below=False)}
                readers = [op for op in after if buffers_read(op) & buffers_written(rows)]
                if readers and all(reads_by_row(op, tile, mmas) for op in readers for tile in buffers_written(rows)):
                    yield loop, rows


def _is_loaded(rows: Parallel, loop: Loop, changed: set[Buffer]) -> bool:
    """Whether a loop fills fragments with values of tensor elements that differ between iterations."""
    tiles = buffers_written(rows)
    stores = [op for op in statements(rows.body, Store, below=False) if not op.op and op.buffer.scope is Scope.FRAGMENT]
    if not all(tile.rank == 1 and covers(rows, tile) for tile in tiles):
        return False
    if not len(tiles) == len(stores) == len(rows.body):
        return False
    loads = [part for value in _inlined(rows, loop) for part in walk(value) if isinstance(part, Load)]
    inside = {let.var for let in statements(loop.body, Let, below=False)}
    for load in loads:
        assert isinstance(load.buffer, Buffer), "a load reads a buffer"
        parts = {part for index in load.indices for part in walk(index)}
        if load.buffer.scope is not Scope.GLOBAL or is_among(load.buffer, changed) or loop.var not in parts:
            return False
        if parts & inside or any(isinstance(part, Load) for part in parts):
            return False  # an index that is itself loaded
        if any(map(_may_change, parts)) or any(map(may_trap, load.indices)):
            return False  # the iteration may change it; or it is undefined after the last iteration
    return bool(loads)


def _inlined(rows: Parallel, loop: Loop) -> tuple[Expr, ...]:
    """The values that the loop stores, with the iteration's named values inlined.

    Variables that the iteration may change in between are not inlined.
    """
    named: dict[Expr, Expr] = {}
    for let in statements(before(loop.body, rows), Let, below=False):
        if not any(map(_may_change, walk(let.value))):
            named[let.var] = substitute(let.value, named)
    return tuple(substitute(op.value, named) for op in statements(rows.body, Store))


def _may_change(part: Expr) -> bool:
    return isinstance(part, Var) and part.role is Role.MUTABLE
