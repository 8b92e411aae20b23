"""The formula of a kernel: each output element as an expression of elements of the inputs, by symbolic execution.

Loops whose iterations add to a tile become sums. Conversions are left out: rounding is stated elsewhere.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce

from tile2cu.analysis.accesses import value_after
from tile2cu.analysis.sum_terms import MAX, MIN, SUM, bounded, merged, total
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Binary, Call, Expr, Load, Role, Var, binary, rebuilt, static_value, substitute, walk
from tile2cu.core.program import (
    Buffer,
    Copy,
    Fill,
    Gemm,
    Launch,
    Let,
    Loop,
    Parallel,
    Program,
    Reduce,
    Reduction,
    Region,
    Scope,
    Stmt,
    Store,
    Swizzle,
    Sync,
)
from tile2cu.core.record import Record

_REDUCTIONS = {Reduction.SUM: SUM, Reduction.MAX: MAX, Reduction.MIN: MIN}
_LETTERS = "ijlpqrstuvw"


class Formula(Record, frozen=True):
    """`output[indices] = value`."""

    output: Buffer
    indices: tuple[Expr, ...]
    value: Expr


class _UnknownError(Exception):
    """No formula is known of a statement."""


def formulas(program: Program) -> tuple[Formula, ...]:
    """The formulas of a kernel's outputs, in the order of its parameters; none where one of them is not known."""
    if len(program.launches) != 1 or program.user_code:
        return ()
    state = _State(program.launches[0])
    try:
        state.run(program.launches[0].body)
        found = [_of_element(*output) for output in state.outputs]
    except _UnknownError:
        return ()
    names = [each.output.name for each in found]
    if len(set(names)) < len(names):
        return ()  # an output in parts
    order = [param.name for param in program.params]
    if not {*names} <= {*order}:
        return ()  # T.alloc_global: a tensor that no caller gives
    return tuple(sorted(found, key=lambda each: order.index(each.output.name)))


@dataclass
class _State:
    """What each tile holds: the element at `_dim(0)`, `_dim(1)`, ... as an expression of these variables."""

    launch: Launch
    tiles: dict[Buffer, Expr] = field(default_factory=dict)
    values: dict[Expr, Expr] = field(default_factory=dict)
    outputs: list[tuple[Buffer, tuple[Expr, ...], Expr]] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.values = {let.var: let.value for let in self.launch.prelude}

    def run(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            match stmt:
                case Copy():
                    self._copy(stmt)
                case Fill(dst=dst, value=value):
                    self._give(dst, self._resolved(value))
                case Parallel():
                    self._parallel(stmt)
                case Reduce():
                    self._reduce(stmt)
                case Gemm():
                    self._gemm(stmt)
                case Loop():
                    self._loop(stmt)
                case Let():
                    self.values[stmt.var] = self._resolved(stmt.value)
                case Sync() | Swizzle():
                    pass
                case _:
                    raise _UnknownError

    def _copy(self, copy: Copy) -> None:
        if copy.row is not None or copy.ends or copy.transposed or copy.block is not None:
            raise _UnknownError
        if len(copy.src.kept) != len(copy.dst.kept):
            raise _UnknownError
        if copy.dst.buffer.scope is Scope.GLOBAL:
            self.outputs.append((copy.dst.buffer.memory, self._indices(copy.dst), self._element(copy.src)))
        else:
            self._give(copy.dst, self._element(copy.src))

    def _give(self, region: Region, value: Expr) -> None:
        """All of a tile has a value of the region's dimensions."""
        if not region.whole or region.buffer.of is not None or region.buffer.scope is Scope.GLOBAL:
            raise _UnknownError
        self.tiles[region.buffer] = value

    def _element(self, region: Region) -> Expr:
        """The element of a region at `_dim(0)`, ... of the dimensions that it keeps."""
        indices = self._indices(region)
        if region.buffer.scope is Scope.GLOBAL and region.buffer.of is None:
            return Load(region.buffer.dtype, region.buffer, indices)
        return self._of_tile(region.buffer, indices)

    def _indices(self, region: Region) -> tuple[Expr, ...]:
        dims = {dim: _dim(number) for number, dim in enumerate(region.kept)}
        starts = [self._resolved(part.start) for part in region.ranges]
        return tuple(binary("+", start, dims[dim]) if dim in dims else start for dim, start in enumerate(starts))

    def _of_tile(self, tile: Buffer, indices: tuple[Expr, ...]) -> Expr:
        if tile.of is not None or tile not in self.tiles:
            raise _UnknownError
        return substitute(self.tiles[tile], {_dim(dim): index for dim, index in enumerate(indices)})

    def _resolved(self, expr: Expr) -> Expr:
        """An expression with what tiles and values hold, without conversions."""

        def change(part: Expr) -> Expr | None:
            if isinstance(part, Load) and isinstance(part.buffer, Buffer) and part.buffer.scope is not Scope.GLOBAL:
                return self._of_tile(part.buffer, part.indices)
            return part.args[0] if isinstance(part, Call) and part.function == "cast" else None

        return rebuilt(substitute(expr, self.values), change)

    def _parallel(self, loop: Parallel) -> None:
        if not all(isinstance(stmt, Store | Let) for stmt in loop.body):
            raise _UnknownError
        outside = dict(self.values)
        for stmt in loop.body:
            if isinstance(stmt, Let):
                self.values[stmt.var] = self._resolved(stmt.value)
            elif isinstance(stmt, Store):
                self._store(stmt, loop.vars)
        self.values = outside

    def _store(self, store: Store, loop: tuple[Var, ...]) -> None:
        indices = tuple(map(self._resolved, store.indices))
        value = self._resolved(value_after(store))
        if store.buffer.scope is Scope.GLOBAL:
            self.outputs.append((store.buffer.memory, indices, value))
            return
        own = {index: _dim(dim) for dim, index in enumerate(indices)}
        if set(own) != set(loop) or len(indices) != len(loop) or store.buffer.of is not None:
            raise _UnknownError
        self.tiles[store.buffer] = substitute(value, own)

    def _reduce(self, op: Reduce) -> None:
        if op.kind not in _REDUCTIONS or op.src.of is not None or op.dst.of is not None:
            raise _UnknownError
        along = self._variable()
        rest = iter(range(op.src.rank))
        kept_dim = op.dst.rank == op.src.rank
        indices = [along if dim == op.dim else _dim(dim if kept_dim else next(rest)) for dim in range(op.src.rank)]
        value: Expr = total(_REDUCTIONS[op.kind], along, op.src.shape[op.dim], self._of_tile(op.src, tuple(indices)))
        if not op.clear:
            own = tuple(_dim(dim) for dim in range(op.dst.rank))
            value = _combined(_REDUCTIONS[op.kind], self._of_tile(op.dst, own), value)
        self.tiles[op.dst] = value

    def _gemm(self, op: Gemm) -> None:
        if op.metadata is not None or op.c.buffer.scope is not Scope.FRAGMENT or not op.c.whole:
            raise _UnknownError
        along, (rows, columns) = self._variable(), (_dim(0), _dim(1))
        a = self._at(op.a, (along, rows) if op.transpose_a else (rows, along))
        b = self._at(op.b, (columns, along) if op.transpose_b else (along, columns))
        extent = op.a.extents[0 if op.transpose_a else 1]
        value: Expr = total(SUM, along, extent, binary("*", a, b))
        if not op.clear and op.clear_if is None:
            value = _combined(SUM, self._of_tile(op.c.buffer, (rows, columns)), value)
        self.tiles[op.c.buffer] = value if op.clear_if is None else _combined(SUM, _carried(op.c.buffer), value)

    def _at(self, region: Region, indices: tuple[Expr, ...]) -> Expr:
        if len(region.kept) != len(indices):
            raise _UnknownError
        return substitute(self._element(region), {_dim(dim): index for dim, index in enumerate(indices)})

    def _loop(self, loop: Loop) -> None:
        if static_value(loop.start) != 0 or static_value(loop.step) != 1:
            raise _UnknownError
        before, stop = dict(self.tiles), self._resolved(loop.stop)
        outputs, count = list(self.outputs), self.count
        self.run(loop.body)  # once to see which tiles it gives values
        written = [tile for tile in before if self.tiles.get(tile) is not before[tile]]
        if written:  # else it would find the same, and nested loops would take 2^depth runs
            self.tiles = {**before, **{tile: _carried(tile) for tile in written}}
            self.outputs, self.count = outputs, count
            self.run(loop.body)
        after = {tile: self.tiles.get(tile) for tile in written}  # none behind a loop in it whose last iteration counts
        self.tiles = before
        for tile, value in after.items():
            found = None if value is None else _added(tile, value)
            if found is None:
                del self.tiles[tile]  # of the last iteration: nothing is known behind the loop
                continue
            kind, term = found
            self.tiles[tile] = _combined(kind, before[tile], merged(total(kind, loop.var, stop, term)))

    def _variable(self) -> Var:
        self.count += 1
        return Var(INT32, "of sum", Role.PARALLEL, self.count)


def _dim(number: int) -> Var:
    return Var(INT32, "dimension", Role.PARALLEL, number)


def _carried(tile: Buffer) -> Load:
    """What a tile held before an iteration."""
    return Load(tile.dtype, tile, tuple(_dim(dim) for dim in range(tile.rank)))


def _combined(kind: str, first: Expr, second: Expr) -> Expr:
    """Two parts of a sum, maximum or minimum; zero adds nothing, and no maximum is below minus infinity."""
    if kind == SUM:
        return second if static_value(first) == 0 else binary("+", first, second)
    name = "max" if kind == MAX else "min"
    infinite = static_value(first) == {"max": -float("inf"), "min": float("inf")}[name]
    return second if infinite else Call(second.dtype, name, (first, second))


def _added(tile: Buffer, value: Expr) -> tuple[str, Expr] | None:
    """What an iteration adds to a tile, or takes the maximum with; None where it does something else."""
    own = _carried(tile)
    for kind, parts, join in (
        (SUM, [*_terms(value)], lambda a, b: binary("+", a, b)),
        (MAX, list(value.args) if isinstance(value, Call) and value.function == "max" else [], None),
    ):
        others = [part for part in parts if part != own]
        if len(others) != len(parts) - 1 or not others or any(map(_reads_tiles, others)):
            continue
        joined: Callable[[Expr, Expr], Expr] = join or (lambda a, b: Call(a.dtype, "max", (a, b)))
        return kind, reduce(joined, others)
    return None


def _terms(value: Expr) -> Iterator[Expr]:
    if isinstance(value, Binary) and value.op == "+":
        yield from (*_terms(value.lhs), *_terms(value.rhs))
    else:
        yield value


def _reads_tiles(value: Expr) -> bool:
    return any(
        isinstance(part, Load) and isinstance(part.buffer, Buffer) and part.buffer.scope is not Scope.GLOBAL
        for part in walk(value)
    )


def _of_element(output: Buffer, indices: tuple[Expr, ...], value: Expr) -> Formula:
    """The formula with a variable for each index of the output. Raises _UnknownError where others are left."""
    if len(indices) != output.rank:
        raise _UnknownError  # it is written by a reshape
    names: dict[Expr, Expr] = {}
    used: set[str] = set()
    for index, extent in zip(indices, output.shape, strict=True):
        if static_value(index) is None and index not in names:
            names[index] = Var(INT32, index_name(extent, used), Role.PARALLEL)
    value = rebuilt(value, lambda part: names.get(part))
    value, found = named_sums(value, used)
    left = {part for part in walk(value) if isinstance(part, Var)} - {*names.values(), *found}
    given = (Role.SIZE, Role.SCALAR)
    if not names or any(var.role not in given for var in left) or _reads_tiles(value) or not bounded(value):
        raise _UnknownError
    return Formula(output, tuple(names.get(index, index) for index in indices), value)


def named_sums(value: Expr, used: set[str]) -> tuple[Expr, set[Var]]:
    """The expression with names for the variables of its sums."""
    variables: dict[Expr, Expr] = {}
    for part in walk(value):
        if isinstance(part, Call) and part.function in (SUM, MAX, MIN):
            var, extent, _ = part.args
            if var not in variables:
                variables[var] = Var(INT32, index_name(extent, used), Role.PARALLEL)
    return substitute(value, variables), {each for each in variables.values() if isinstance(each, Var)}


def index_name(extent: Expr, used: set[str]) -> str:
    """A letter for an index: the first of the extent's name, where it is free."""
    name = getattr(extent, "name", "")[:1].lower()
    name = name if name.isalpha() and name not in used else next(each for each in _LETTERS if each not in used)
    used.add(name)
    return name
