"""Loops that decode numbers of 4 bits into a tensor core's register operand: a thread's columns of 32 at a time."""

from tile2cu.core.accesses import Access, element_accesses, expressions, moved_index
from tile2cu.core.bounds import Bounds
from tile2cu.core.expr import Binary, Call, Expr, Var, children, nibbles_of, quotient_of, walk
from tile2cu.core.layout import FragmentLayout, MmaAccumulator, MmaOperandA, WgmmaAccumulator
from tile2cu.core.program import Let, Parallel, Scope, Stmt, Store

SPREAD = 8  # elements that a thread holds of 32 neighbouring columns: headers/tl/common/spread.h
_COLUMNS = 4 * SPREAD
_ROW_BYTES = 16  # whose bytes the 32 columns' packed numbers are
_COMPARED = frozenset(("<", "<=", ">", ">=", "==", "!="))


def spread_packets(op: Parallel, layout: FragmentLayout, plain: frozenset[str], bounds: Bounds) -> bool:
    """Whether a loop over tensor cores' registers takes 8 of a thread's elements of a row at a time.

    That pays where it reads numbers of 4 bits: their bytes come 16 at a time. All else that it reads is the same for 32
    columns, or in registers; its values are `plain` functions and operators, comparisons and choices.
    """
    if not isinstance(layout, MmaAccumulator | MmaOperandA | WgmmaAccumulator) or layout.along(1).registers % SPREAD:
        return False
    last = op.vars[-1]
    if not all(_simple(stmt, plain) and not moved_index(stmt, last) for stmt in op.body):
        return False
    parts = (part for stmt in op.body for expr in expressions(stmt) for part in walk(expr))
    if all(nibbles_of(part, last) is None for part in parts):
        return False
    return all(_fits(access, op.vars, bounds) for access in element_accesses(op.body))


def _simple(stmt: Stmt, plain: frozenset[str]) -> bool:
    return isinstance(stmt, Let | Store) and (isinstance(stmt, Let) or not stmt.op) and _value(stmt.value, plain)


def _value(expr: Expr, plain: frozenset[str]) -> bool:
    match expr:
        case Call() if expr.function not in plain | {"if_then_else"} and children(expr):
            return False
        case Binary() if expr.op not in plain | _COMPARED | {"//", "%"}:
            return False
        case _:
            return all(_value(child, plain) for child in children(expr))


def _fits(access: Access, variables: tuple[Var, ...], bounds: Bounds) -> bool:
    """Whether a packet knows its elements: registers, one for 32 columns, or the byte of two numbers."""
    *_, last = variables
    if access.buffer.scope is Scope.FRAGMENT:
        return access.indices == variables or access.indices == variables[:1]
    if access.is_store or access.buffer.scope is Scope.LOCAL:
        return False
    *before, column = access.indices
    if any(last in walk(index) for index in before):
        return False
    quotient = quotient_of(column, last)
    if quotient is None:
        return last not in walk(column)
    divided, divisor = quotient
    offset = bounds.linear(divided)
    terms = dict(offset.terms)
    low = bounds.interval(divided).low
    if terms.pop(last, 0) != 1 or low is None or low < 0:
        return False
    starts = (offset.constant, *(bounds.multiple_of(atom) * factor for atom, factor in terms.items()))
    if any(start % _COLUMNS for start in starts):
        return False
    tile = access.buffer
    row = tile.static_shape[-1] if tile.scope is Scope.SHARED else 0
    packed = divisor == 2 and tile.scope is Scope.SHARED and tile.dtype.name == "uint8" and row % _ROW_BYTES == 0
    return packed or divisor % _COLUMNS == 0
