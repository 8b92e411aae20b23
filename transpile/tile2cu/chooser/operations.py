"""The work of one operation: an MMA, a copy, a loop over elements."""

from collections.abc import Callable, Mapping, Set
from math import prod

from tile2cu.chooser.counts import Count, Counts
from tile2cu.chooser.numbers import Number, Unknown, Values, key_of, number
from tile2cu.core.expr import Binary, Call, Expr, Load, Unary, Var, static_value, walk
from tile2cu.core.program import (
    Atomic,
    Buffer,
    Copy,
    Gemm,
    If,
    Let,
    Parallel,
    Region,
    Scope,
    Stmt,
    Store,
    walk_stmts,
)
from tile2cu.core.record import Record

_STORED_BITS = 16  # of an element, up to which results are stored by TMA
_LINE_BITS, _SECTOR_BITS = 128 * 8, 32 * 8  # of the L2
_SPECIAL = 8  # instructions that one of the special function unit takes the time of: it has 16 lanes, not 128
_SPECIAL_FUNCTIONS = frozenset({"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sin", "cos", "pow", "sigmoid"})


class Surroundings(Record, frozen=True):
    """Where a statement is: `inside` of a loop whose iterations are counted; counts read the keys `read`."""

    pipelined: Mapping[int, int]
    read: Set[str]
    inside: bool = False


def gemm(stmt: Gemm) -> Count:
    m, n = map(number, stmt.c.extents)
    k = number(stmt.a.extents[0 if stmt.transpose_a else 1])
    sparse = 1 if stmt.metadata is None else 2

    def count(values: Values, counts: Counts, times: int) -> None:
        shape = (m(values), n(values), sparse * k(values))
        counts.mma[shape] = counts.mma.get(shape, 0) + times

    return count


def copy(stmt: Copy, scope: Surroundings) -> Count | None:
    if stmt.block is not None:
        return bytes_of("exchanged" if static_value(stmt.block) is None else "gathered", _whole(stmt.src))
    if stmt.dst.buffer.scope is Scope.GLOBAL:
        return _stored(stmt.dst)
    if stmt.src.buffer.scope is Scope.GLOBAL:
        return _load(stmt.src) if scope.inside else bytes_of("prologue", inside_of(stmt.src))
    if stmt.dst.buffer.scope is Scope.FRAGMENT:
        return elements(tuple(map(number, stmt.dst.extents)), 1, scope)
    return None


def _load(region: Region) -> Count:
    inside, whole, row = inside_of(region), _whole(region), number(region.ranges[-1].extent)
    bits = region.buffer.dtype.bits
    pitch = number(region.buffer.shape[-1]) if region.buffer.strides is None else None

    def count(values: Values, counts: Counts, times: int) -> None:
        bytes_ = inside(values)
        counts.loaded += times * bytes_
        counts.filled += times * (whole(values) - bytes_)
        if pitch is not None and pitch(values) * bits % _SECTOR_BITS:
            counts.straddling += times * bytes_
            counts.straddling_rows += times * bytes_ * 8 / max(row(values) * bits, 1)
        if row(values) * bits < _LINE_BITS:
            counts.narrow += times * bytes_

    return count


def _stored(region: Region) -> Count:
    bytes_, wide = bytes_of("stored", inside_of(region)), bytes_of("stored_wide", inside_of(region))

    def count(values: Values, counts: Counts, times: int) -> None:
        bytes_(values, counts, times)
        wide(values, counts, times)

    return count if region.buffer.dtype.bits > _STORED_BITS else bytes_


def bytes_of(what: str, of: Callable[[Values], float], *, twice: bool = False) -> Count:
    factor = 2 if twice else 1

    def count(values: Values, counts: Counts, times: int) -> None:
        setattr(counts, what, getattr(counts, what) + factor * times * of(values))

    return count


def _whole(region: Region) -> Callable[[Values], float]:
    extents, bits = tuple(map(number, region.extents)), region.buffer.dtype.bits
    return lambda values: prod(extent(values) for extent in extents) * bits / 8


def inside_of(region: Region) -> Callable[[Values], float]:
    """The bytes of a box that are inside of the tensor, in the mean of the boxes that tile it."""
    bits = region.buffer.dtype.bits
    sides = [
        (number(part.extent), number(shape)) for part, shape in zip(region.ranges, region.buffer.shape, strict=True)
    ]

    def of(values: Values) -> float:
        total = bits / 8
        for extent, shape in sides:
            box = extent(values)
            if box > 1:
                size = shape(values)
                total *= size / -(-size // box) if size > 0 else 0
        return total

    return of


def parallel(stmt: Parallel, scope: Surroundings) -> Count:
    """Elements of tensors that a loop over elements loads and stores; an index that stays the same is loaded once."""
    extents = {var: number(extent) for var, extent in zip(stmt.vars, stmt.extents, strict=True)}
    accesses: list[tuple[str, int, list[Number]]] = []

    def add(what: str, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        accesses.append((what, buffer.dtype.bits, [_places(index, extents) for index in indices]))

    for inner in walk_stmts(stmt.body):
        for value in _values_of(inner):
            for load in walk(value):
                if isinstance(load, Load) and isinstance(load.buffer, Buffer) and load.buffer.scope is Scope.GLOBAL:
                    add("loaded" if scope.inside else "prologue", load.buffer, load.indices)
        if isinstance(inner, Store | Atomic) and inner.buffer.scope is Scope.GLOBAL:
            add("stored", inner.buffer, inner.indices)

    def count(values: Values, counts: Counts, times: int) -> None:
        for what, bits, places in accesses:
            bytes_ = prod(each(values) for each in places) * bits / 8
            setattr(counts, what, getattr(counts, what) + times * bytes_)

    return count


def _places(index: Expr, extents: Mapping[Var, Number]) -> Number:
    """How many values an index has over the variables of a loop over elements, as one that grows with each of them."""
    own = {key_of(var): extent for var, extent in extents.items() if var in walk(index)}
    place = number(index)

    def of(values: Values) -> int:
        sides = {key: extent(values) for key, extent in own.items()}
        most = prod(sides.values())
        corners = dict.fromkeys(sides, 0), {key: extent - 1 for key, extent in sides.items()}
        try:
            first, last = (place({**values, **each}) for each in corners)
        except Unknown:
            return most
        return min(abs(last - first) + 1, most)

    return of


def both(first: Count, second: Count | None) -> Count:
    if second is None:
        return first

    def count(values: Values, counts: Counts, times: int) -> None:
        first(values, counts, times)
        second(values, counts, times)

    return count


def elementwise(stmt: Parallel, scope: Surroundings) -> Count | None:
    """The operations of a loop over elements, of whose arms of a branch all are counted."""
    values = (value for inner in walk_stmts(stmt.body) for value in _values_of(inner))
    operations = sum(map(_instructions, (part for value in values for part in walk(value))))
    return elements(tuple(map(number, stmt.extents)), max(operations, 1), scope)


def elements(extents: tuple[Number, ...], operations: int, scope: Surroundings) -> Count | None:
    """So many operations for each element, in loops whose iterations are counted."""
    if not scope.inside:
        return None

    def count(values: Values, counts: Counts, times: int) -> None:
        counts.elementwise += times * operations * prod(extent(values) for extent in extents)

    return count


def _instructions(expr: Expr) -> int:
    """Instructions of a lane; the special function unit has an eighth of the lanes of the others."""
    match expr:
        case Binary(op="/"):
            return _SPECIAL
        case Call(function=function):
            return _SPECIAL if function in _SPECIAL_FUNCTIONS else 1
        case Binary() | Unary():
            return 1
        case _:
            return 0


def _values_of(stmt: Stmt) -> tuple[Expr, ...]:
    match stmt:
        case Let() | Store() | Atomic():
            return (stmt.value,)
        case If():
            return (stmt.condition,)
        case _:
            return ()
