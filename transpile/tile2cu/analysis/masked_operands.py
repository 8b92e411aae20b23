"""Rows whose elements a mask takes out: whether NaN or infinity in them reaches the result."""

from collections.abc import Iterator, Mapping
from itertools import takewhile
from math import isinf

from tile2cu.analysis.accesses import parts_of
from tile2cu.analysis.control import Place, conditions_on, places
from tile2cu.analysis.linear import Linear, linear_of
from tile2cu.analysis.uses import readers, users
from tile2cu.core.expr import Binary, Call, Expr, Load, Unary, Var, static_value, walk
from tile2cu.core.program import Buffer, Copy, Gemm, If, Let, Scope, Stmt, Store
from tile2cu.core.program import walk_stmts as walk_body

_Found = tuple[tuple[Buffer, tuple[Buffer, ...]], ...]


def masked_operands(body: tuple[Stmt, ...]) -> _Found:
    """(tensor, tensors whose elements the mask depends on) for each tensor of which an MMA multiplies rows by 0.

    A tile is masked where its elements are minus infinity on a condition. What is computed from it has zeros there
    (exp), and the rows of an MMA's operand B that they multiply are loaded all the same. Masks that compare with the
    extent of the tensor alone do not count: out-of-bounds loads return zero. Nor do those of rows that are not loaded.
    """
    return _operands(body, loaded=True)


def zeroed_operands(body: tuple[Stmt, ...]) -> _Found:
    """The same for tensors whose masked rows are not loaded: the tile has zeros there."""
    return _operands(body, loaded=False)


def replaced_operands(body: tuple[Stmt, ...]) -> _Found:
    """The same for tensors whose masked rows are loaded and multiplied, and minus infinity replaces the results.

    That is, the next access to the accumulator behind its MMAs is the mask, and only they read the tile.
    """
    stmts, found = list(walk_body(body)), dict[Buffer, tuple[Buffer, ...]]()
    values: dict[Expr, Expr] = {stmt.var: stmt.value for stmt in stmts if isinstance(stmt, Let)}
    of_tile = {load.dst.buffer.memory: load for load in stmts if isinstance(load, Copy) and _is_load(load)}
    others = {tensor for tensor, _ in (*masked_operands(body), *zeroed_operands(body))}
    for place in places(body):
        condition = _replaces(place, values)
        if condition is None:
            continue
        assert isinstance(place.stmt, Store)
        mmas = _mmas_before(place, body)
        for tile in dict.fromkeys(op.b.buffer.memory for op in mmas if op.transpose_b):
            tensor = of_tile[tile].src.buffer.memory if tile in of_tile else None
            if tensor is None or tensor in others or any(op not in mmas for op in readers(body, tile)):
                continue
            if not _asks_of_extents_alone(condition, tensor, values):
                found[tensor] = tuple(dict.fromkeys(_tensors_of(condition, values)))
    return tuple(found.items())


def _replaces(place: Place, values: Mapping[Expr, Expr]) -> Expr | None:
    """The condition of a mask that keeps elements of a fragment, or minus infinity replaces them; None of others."""
    match place.stmt:
        case Store(
            buffer=tile,
            indices=indices,
            value=Call(
                function="if_then_else", args=(Binary(op="<") as condition, Load(buffer=of, indices=same), other)
            ),
        ) if tile is of and indices == same and _is_minus_infinity(other):
            extent = place.elements.get(indices[-1]) if isinstance(indices[-1], Var) else None
            needed = [each for each in place.path if isinstance(each[0], If)][-1:]
            guards = conditions_on(tuple(needed))
            if extent is not None and all(
                _holds_where_masked(*each, condition, indices[-1], extent, values) for each in guards
            ):
                return condition
    return None


def _holds_where_masked(
    guard: Expr, holds: bool, condition: Expr, column: Expr, extent: Expr, values: Mapping[Expr, Expr]
) -> bool:
    """Whether `guard` is that the last column is masked: `at the last column >= end` for `at a column < end`."""
    assert isinstance(condition, Binary)
    if not holds or not isinstance(guard, Binary) or guard.op != ">=":
        return False
    past = linear_of(condition.lhs, values).plus(linear_of(condition.rhs, values), -1)
    past = past.plus(linear_of(extent, values)).plus(linear_of(column), -1)
    found = linear_of(guard.lhs, values).plus(linear_of(guard.rhs, values), -1).plus(past, -1)
    return not found.terms and found.constant >= -1


def _mmas_before(place: Place, body: tuple[Stmt, ...]) -> list[Gemm]:
    """The MMAs whose accumulator is the tile that a statement stores to, where it is the next access behind them."""
    assert isinstance(place.stmt, Store)
    around = (*place.around, place.stmt)
    uses = users(body, place.stmt.buffer)
    first = next((n for n, each in enumerate(uses) if any(each is outer for outer in around)), 0)
    last = next((n for n in range(first - 1, -1, -1) if not isinstance(uses[n], Gemm)), -1)
    return [op for op in uses[last + 1 : first] if isinstance(op, Gemm) and op.c.buffer is place.stmt.buffer]


def _operands(body: tuple[Stmt, ...], *, loaded: bool) -> _Found:
    stmts = list(walk_body(body))
    values: dict[Expr, Expr] = {stmt.var: stmt.value for stmt in stmts if isinstance(stmt, Let)}
    masks: dict[Buffer, list[tuple[Expr, Expr]]] = {}  # of a tile: conditions, with the index of its columns
    for store, conditions in _stores(body):
        found = [*_conditions_of_infinity(store.value)]
        found += conditions if _is_minus_infinity(store.value) else ()
        masks.setdefault(store.buffer.memory, []).extend((condition, store.indices[-1]) for condition in found)
    loads = (stmt for stmt in stmts if isinstance(stmt, Copy) and _is_load(stmt))
    of_tile = {load.dst.buffer.memory: load for load in loads}
    found_tensors: dict[Buffer, list[Buffer]] = {}
    for stmt in stmts:
        if not isinstance(stmt, Gemm) or stmt.b.buffer.memory not in of_tile:
            continue
        load = of_tile[stmt.b.buffer.memory]
        tensor = load.src.buffer.memory
        for tile in _computed_from(stmt.a.buffer.memory, stmts):
            for condition, column in masks.get(tile, ()):
                plain = not stmt.transpose_a and not stmt.transpose_b
                ended = plain and _ends_where_masked(load, condition, column, values)
                if ended is not loaded and not _asks_of_extents_alone(condition, tensor, values):
                    found_tensors.setdefault(tensor, []).extend(_tensors_of(condition, values))
    return tuple((tensor, tuple(dict.fromkeys(deciding))) for tensor, deciding in found_tensors.items())


def _stores(body: tuple[Stmt, ...]) -> Iterator[tuple[Store, tuple[Expr, ...]]]:
    """The stores of elementwise loops to fragments, with the conditions inside of the loop."""
    for place in places(body):
        stmt = place.stmt
        if isinstance(stmt, Store) and stmt.buffer.memory.scope is Scope.FRAGMENT:
            inside = tuple(takewhile(lambda step: isinstance(step[0], If), reversed(place.path)))[::-1]
            yield stmt, tuple(condition for condition, _ in conditions_on(inside))


def _conditions_of_infinity(value: Expr) -> Iterator[Expr]:
    """The conditions on which a value is minus infinity."""
    for part in walk(value):
        if isinstance(part, Call) and part.function == "if_then_else":
            condition, *arms = part.args
            if any(map(_is_minus_infinity, arms)):
                yield condition


def _is_minus_infinity(value: Expr) -> bool:
    if isinstance(value, Call) and value.function == "cast":
        return _is_minus_infinity(value.args[0])
    if isinstance(value, Unary | Binary | Call) or static_value(value) is not None:
        number = static_value(value)
        return number is not None and isinf(number) and number < 0
    return False


def _is_load(stmt: Copy) -> bool:
    return stmt.src.buffer.scope is Scope.GLOBAL and stmt.dst.buffer.scope is Scope.SHARED


def _computed_from(tile: Buffer, stmts: list[Stmt]) -> set[Buffer]:
    """The fragments that a tile's elements are computed from, and itself."""
    found, before = {tile}, set[Buffer]()
    while found != before:
        before = set(found)
        for stmt in stmts:
            match stmt:
                case Copy() if stmt.dst.buffer.memory in found:
                    found.add(stmt.src.buffer.memory)
                case Store() if stmt.buffer.memory in found:
                    loads = (part for part in parts_of((stmt,)) if isinstance(part, Load))
                    found |= {part.buffer.memory for part in loads if isinstance(part.buffer, Buffer)}
                case _:
                    pass
    return found


def _ends_where_masked(load: Copy, condition: Expr, column: Expr, values: Mapping[Expr, Expr]) -> bool:
    """Whether a load's rows end where a mask begins: at `first + limit`, for columns with `first + column < end`."""
    end = load.ends[load.src.kept[0]] if load.ends and load.src.kept else None
    if end is None or not isinstance(condition, Binary) or condition.op != "<":
        return False
    limits = _limits(end, load.src.ranges[load.src.kept[0]].start, values)
    valid = linear_of(condition.rhs, values).plus(linear_of(condition.lhs, values), -1).plus(linear_of(column))
    past = (valid.plus(limit, -1) for limit in limits)
    return any(not each.terms and each.constant >= 0 for each in past)


def _limits(end: Expr, start: Expr, values: Mapping[Expr, Expr]) -> Iterator[Linear]:
    """What is added to the start of rows to give their end, the least of several."""
    match end:
        case Call(function="min", args=ends):
            for each in ends:
                yield from _limits(each, start, values)
        case Call(function="saturating_add", args=(first, limit)) if first == start:
            yield linear_of(limit, values)
        case _:
            yield linear_of(end, values).plus(linear_of(start, values), -1)


def _closure(condition: Expr, values: Mapping[Expr, Expr]) -> Iterator[Expr]:
    """The parts of a condition, and of the values that it names."""
    pending, seen = [condition], set[Var]()
    while pending:
        for part in walk(pending.pop()):
            yield part
            if isinstance(part, Var) and part in values and part not in seen:
                seen.add(part)
                pending.append(values[part])


def _asks_of_extents_alone(condition: Expr, tensor: Buffer, values: Mapping[Expr, Expr]) -> bool:
    """Whether each comparison of a condition is `index < an extent of the tensor`."""
    match condition:
        case Binary(op="and", lhs=lhs, rhs=rhs):
            return _asks_of_extents_alone(lhs, tensor, values) and _asks_of_extents_alone(rhs, tensor, values)
        case Binary(op="<" | ">=", rhs=rhs):
            limit = values.get(rhs, rhs) if isinstance(rhs, Var) else rhs
            return limit in tensor.shape
        case _:
            return False


def _tensors_of(condition: Expr, values: Mapping[Expr, Expr]) -> Iterator[Buffer]:
    """The tensors whose elements decide a condition."""
    for part in _closure(condition, values):
        if isinstance(part, Load) and isinstance(part.buffer, Buffer) and part.buffer.memory.scope is Scope.GLOBAL:
            yield part.buffer.memory
