"""Loops that decode 4-bit numbers into a tensor core's register operand: a thread's elements of 32 columns together."""

from tile2cu.analysis.accesses import Access, element_accesses, moved_index, parts_of
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.uses import statements
from tile2cu.core.expr import Binary, Call, Expr, Var, children, nibbles_of, quotient_of, walk
from tile2cu.core.layout import FragmentLayout, MmaAccumulator, MmaOperandA, WgmmaAccumulator
from tile2cu.core.program import Buffer, Let, Parallel, Scope, Stmt, Store

# Functions of headers/tl/common/math.h that take tl::Vec as well as scalars.
ELEMENTWISE = frozenset(
    (
        "max",
        "min",
        "divide",
        "abs",
        "exp",
        "exp2",
        "log",
        "log2",
        "sqrt",
        "rsqrt",
        "tanh",
        "sigmoid",
        "cast",
        "reinterpret",
    )
)
ARITHMETIC = frozenset(("+", "-", "*", "/", "&", "|", "^", "<<", ">>", "%", "//"))
_COMPARED = frozenset(("<", "<=", ">", ">=", "==", "!="))
SPREAD = 8  # elements per thread of 32 adjacent columns: headers/tl/common/spread.h
_COLUMNS = 4 * SPREAD
_ROW_BYTES = 16  # bytes of 32 columns of packed numbers


def decoded_tiles(op: Parallel, layout: FragmentLayout, bounds: Bounds) -> tuple[Buffer, ...]:
    """The tiles of packed numbers in a loop that takes 8 of a thread's elements of a row together.

    That pays where it reads 4-bit numbers: 16 bytes of them per load. Its other loads are uniform over 32 columns, or
    in registers; its values are functions, operators, comparisons and choices.
    """
    if not isinstance(layout, MmaAccumulator | MmaOperandA | WgmmaAccumulator) or layout.along(1).registers % SPREAD:
        return ()
    last = op.vars[-1]
    parts = parts_of(statements(op.body, Stmt))
    packed = tuple(load.buffer for part in parts if (load := nibbles_of(part, last)) is not None)
    simple = all(_simple(stmt) and not moved_index(stmt, last) for stmt in statements(op.body, Stmt))
    fits = simple and all(_fits(access, op.vars, bounds) for access in element_accesses(op.body))
    return tuple(tile for tile in packed if isinstance(tile, Buffer)) if fits else ()


def _simple(stmt: Stmt) -> bool:
    return isinstance(stmt, Let | Store) and (isinstance(stmt, Let) or not stmt.op) and _value(stmt.value)


def _value(expr: Expr) -> bool:
    match expr:
        case Call() if expr.function not in ELEMENTWISE | {"if_then_else"} and children(expr):
            return False
        case Binary() if expr.op not in ARITHMETIC | _COMPARED:
            return False
        case _:
            return all(_value(child) for child in children(expr))


def _fits(access: Access, variables: tuple[Var, ...], bounds: Bounds) -> bool:
    """Whether a vector can load it: from registers, uniform over 32 columns, or the byte of two numbers."""
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
