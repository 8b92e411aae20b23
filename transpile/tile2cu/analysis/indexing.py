"""Which tensors' elements decide indices of other tensors and trip counts, through scalars and tiles."""

from collections.abc import Iterator, Mapping

from tile2cu.analysis.accesses import expressions
from tile2cu.core.expr import Binary, Call, Expr, Load, Var, children, static_value, walk
from tile2cu.core.program import (
    Assign,
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Declare,
    Let,
    Loop,
    Scope,
    Stmt,
    Store,
    walk_stmts,
)
from tile2cu.core.record import Record
from tile2cu.core.span import Span


class Index(Record, frozen=True):
    """Elements of `source` decide an index along dimension `dim` of `tensor`, or a trip count where that is None.

    `within`: no element leads beyond the extent, as the index is a remainder by it.
    """

    source: Buffer
    tensor: Buffer | None
    dim: int
    span: Span
    within: bool = False


def element_indices(body: tuple[Stmt, ...]) -> tuple[Index, ...]:
    """The indices and trip counts that are computed from elements of tensors, through scalars and tiles."""
    stmts = list(walk_stmts(body))
    origins: dict[Var | Buffer, frozenset[Buffer]] = {}
    before = None
    while before != origins:  # through loops, what a later statement assigns reaches an earlier one
        before = dict(origins)
        for stmt in stmts:
            for target, given in _assigned(stmt):
                origins[target] = origins.get(target, frozenset()).union(*(_origins(each, origins) for each in given))
    values = {stmt.var: stmt.value for stmt in stmts if isinstance(stmt, Let)}
    found = (
        Index(source, tensor, dim, stmt.span, tensor is not None and _is_remainder(index, tensor.shape[dim], values))
        for stmt in stmts
        for index, tensor, dim in _indices(stmt)
        for source in sorted(_origins(index, origins), key=lambda each: each.name)
    )
    return tuple(dict.fromkeys(found))


def _is_remainder(index: Expr, extent: Expr, values: Mapping[Var, Expr]) -> bool:
    """Whether an index is what is left of a division by an extent."""
    value = values.get(index, index) if isinstance(index, Var) else index
    by = value.rhs if isinstance(value, Binary) and value.op == "%" else None
    if isinstance(value, Call) and value.function == "floormod":
        by = value.args[1]
    known = static_value(extent)
    return by is not None and (by == extent or (known is not None and static_value(by) == known))


def _assigned(stmt: Stmt) -> Iterator[tuple[Var | Buffer, tuple[Expr | Buffer, ...]]]:
    """What a statement gives a value to, and from what."""
    match stmt:
        case Let() | Assign():
            yield stmt.var, (stmt.value,)
        case Loop():
            yield stmt.var, (stmt.start, stmt.stop)
        case Declare(init=init) if init is not None:
            yield stmt.var, (init,)
        case Store() if stmt.buffer.memory.scope is not Scope.GLOBAL:
            yield stmt.buffer.memory, (stmt.value,)
        case Copy() if stmt.dst.buffer.memory.scope is not Scope.GLOBAL:
            yield stmt.dst.buffer.memory, (stmt.src.buffer,)
        case _:
            pass


def _origins(value: Expr | Buffer, origins: dict[Var | Buffer, frozenset[Buffer]]) -> frozenset[Buffer]:
    """The integer tensors that a value is computed from."""
    if isinstance(value, Buffer):
        memory = value.memory
        if memory.scope is Scope.GLOBAL:
            return frozenset(() if value.dtype.is_float else (memory,))
        return origins.get(memory, frozenset())
    match value:
        case Load(buffer=buffer) if isinstance(buffer, Buffer):
            return _origins(buffer, origins)
        case Var():
            return origins.get(value, frozenset())
        case _:
            return frozenset().union(*(_origins(part, origins) for part in children(value)))


def _indices(stmt: Stmt) -> Iterator[tuple[Expr, Buffer | None, int]]:
    """The indices of a statement's accesses with their tensors, and what decides how often a loop runs."""
    for expr in expressions(stmt):
        for part in walk(expr):
            if isinstance(part, Load) and isinstance(part.buffer, Buffer):
                yield from _of_access(part.buffer, part.indices)
    match stmt:
        case Loop():
            yield from ((bound, None, 0) for bound in (stmt.start, stmt.stop))
        case Copy() | AtomicTile():
            for region in (stmt.src, stmt.dst):
                yield from _of_access(region.buffer, tuple(part.start for part in region.ranges))
        case Store() | Atomic():
            yield from _of_access(stmt.buffer, stmt.indices)
        case _:
            pass


def _of_access(buffer: Buffer, indices: tuple[Expr, ...]) -> Iterator[tuple[Expr, Buffer | None, int]]:
    """The indices along the dimensions of a tensor; a tile is no tensor, and its size is fixed."""
    if buffer.memory.scope is Scope.GLOBAL:
        yield from ((index, buffer, dim) for dim, index in enumerate(indices))
