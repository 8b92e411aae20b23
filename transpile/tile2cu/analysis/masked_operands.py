"""Rows that an MMA multiplies by the zeros of masked elements: NaN or infinity in them reaches the result."""

from collections.abc import Iterator
from itertools import takewhile
from math import isinf

from tile2cu.analysis.accesses import parts_of
from tile2cu.analysis.control import conditions_on, places
from tile2cu.core.expr import Binary, Call, Expr, Load, Unary, Var, static_value, walk
from tile2cu.core.program import Buffer, Copy, Gemm, If, Let, Scope, Stmt, Store
from tile2cu.core.program import walk_stmts as walk_body


def masked_operands(body: tuple[Stmt, ...]) -> tuple[tuple[Buffer, tuple[Buffer, ...]], ...]:
    """(tensor, tensors whose elements the mask depends on) for each tensor of which an MMA multiplies rows by 0.

    A tile is masked where its elements are minus infinity on a condition. What is computed from it has zeros there
    (exp), and the rows of an MMA's operand B that they multiply are loaded all the same. Masks that compare with the
    extent of the tensor alone do not count: out-of-bounds loads return zero.
    """
    stmts = list(walk_body(body))
    values = {stmt.var: stmt.value for stmt in stmts if isinstance(stmt, Let)}
    masks: dict[Buffer, list[Expr]] = {}
    for store, conditions in _stores(body):
        found = [*_conditions_of_infinity(store.value)]
        found += conditions if _is_minus_infinity(store.value) else ()
        masks.setdefault(store.buffer.memory, []).extend(found)
    loads = (stmt for stmt in stmts if isinstance(stmt, Copy) and _is_load(stmt))
    loaded = {load.dst.buffer.memory: load.src.buffer.memory for load in loads}
    found_tensors: dict[Buffer, list[Buffer]] = {}
    for stmt in stmts:
        if not isinstance(stmt, Gemm) or stmt.b.buffer.memory not in loaded:
            continue
        tensor = loaded[stmt.b.buffer.memory]
        for tile in _computed_from(stmt.a.buffer.memory, stmts):
            for condition in masks.get(tile, ()):
                if not _asks_of_extents_alone(condition, tensor, values):
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


def _closure(condition: Expr, values: dict[Var, Expr]) -> Iterator[Expr]:
    """The parts of a condition, and of the values that it names."""
    pending, seen = [condition], set[Var]()
    while pending:
        for part in walk(pending.pop()):
            yield part
            if isinstance(part, Var) and part in values and part not in seen:
                seen.add(part)
                pending.append(values[part])


def _asks_of_extents_alone(condition: Expr, tensor: Buffer, values: dict[Var, Expr]) -> bool:
    """Whether each comparison of a condition is `index < an extent of the tensor`."""
    match condition:
        case Binary(op="and", lhs=lhs, rhs=rhs):
            return _asks_of_extents_alone(lhs, tensor, values) and _asks_of_extents_alone(rhs, tensor, values)
        case Binary(op="<" | ">=", rhs=rhs):
            limit = values.get(rhs, rhs) if isinstance(rhs, Var) else rhs
            return limit in tensor.shape
        case _:
            return False


def _tensors_of(condition: Expr, values: dict[Var, Expr]) -> Iterator[Buffer]:
    """The tensors whose elements decide a condition."""
    for part in _closure(condition, values):
        if isinstance(part, Load) and isinstance(part.buffer, Buffer) and part.buffer.memory.scope is Scope.GLOBAL:
            yield part.buffer.memory
