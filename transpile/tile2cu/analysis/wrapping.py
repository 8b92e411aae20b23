"""Sums, differences and multiples of ints that may overflow because of numbers that no launcher knows: they wrap.

A launcher rejects sizes for which arithmetic of sizes overflows. It does not know the elements of tensors, and takes
any scalar arguments.
"""

from collections.abc import Iterator, Set
from enum import IntEnum

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.bounds import Bounds
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import (
    Binary,
    Expr,
    Load,
    Role,
    Unary,
    Var,
    binary,
    children,
    int_const,
    is_of_thread,
    static_value,
    variables_in,
    works_among_threads,
)
from tile2cu.core.memo import kept
from tile2cu.core.program import Assign, Atomic, Declare, Launch, Let, Loop
from tile2cu.core.schedule import log2_of


class Known(IntEnum):
    """How much of an integer is known before a call."""

    BY_LAUNCHER = 0  # from sizes and indices alone
    UNIFORM = 1  # a scalar argument or an element that is the same for all iterations of a T.Parallel decides
    DATA = 2  # elements that differ between these, or what threads exchange


def may_wrap(bounds: Bounds, expr: Expr, *, as_index: bool = False) -> bool:
    """Whether an int may not hold a sum, difference or multiple because of a number that no launcher knows.

    DATA counts only `as_index`: on other arithmetic with it no access depends. What is taken modulo a power of two
    wraps, too: that gives the remainder of the exact number.
    """
    if expr.dtype != INT32 or static_value(expr) is not None:
        return False
    if _is_computed(expr) and expr in taken_modulo(bounds.launch):
        return not bounds.of_values.never_wraps(expr)
    match expr:
        case Unary(op="-", operand=operand):
            return may_wrap(bounds, binary("-", int_const(0), operand), as_index=as_index)
        case Binary(op="+" | "-" | "*"):
            known = _known(expr, _decided(bounds.launch), _differing(bounds.launch))
            is_open = known is Known.UNIFORM or (as_index and known is Known.DATA)
            return is_open and not bounds.of_values.never_wraps(expr)
        case _:
            return False


@kept
def taken_modulo(launch: Launch) -> frozenset[Expr]:
    """The integers, and parts of them, of which an expression of a launch takes the low bits only."""
    stmts = (*launch.prelude, *launch.statements)
    values: dict[Expr, Expr] = {stmt.var: stmt.value for stmt in stmts if isinstance(stmt, Let)}
    found: set[Expr] = set()
    pending: list[tuple[Expr, int | None]] = [(expr, None) for stmt in stmts for expr in expressions(stmt)]
    while pending:
        part, bits = pending.pop()
        if bits is not None:
            found.add(part)
            pending += [(values[part], bits)] if part in values else []
        pending += operands_by_bits(part, bits)
    return frozenset(found)


def _is_computed(expr: Expr) -> bool:
    """Whether an expression is a sum, difference or multiple; the bits of others are those of their operands."""
    return isinstance(expr, Binary | Unary) and expr.op in ("+", "-", "*")


def wraps_below(bounds: Bounds, expr: Expr) -> bool:
    """Whether arithmetic whose low bits decide those of an expression may wrap: it may then be negative."""
    pending: list[tuple[Expr, int | None]] = [(bounds.expanded(expr), 1)]
    while pending:
        part, bits = pending.pop()
        if bits is not None:
            if _is_computed(part) and not bounds.of_values.never_wraps(part):
                return True
            pending += operands_by_bits(part, bits)
    return False


def operands_by_bits(expr: Expr, bits: int | None) -> Iterator[tuple[Expr, int | None]]:
    """The operands of an expression, with how many of their low bits decide `bits` of its own; None for all of them.

    32-bit arithmetic may wrap in those of which at most 32 low bits count.
    """
    bits = bits if expr.dtype == INT32 else None
    match expr:
        case Binary(op="&", lhs=lhs, rhs=rhs) if expr.dtype == INT32:
            masks = [int(value) for value in map(static_value, (lhs, rhs)) if value is not None and value >= 0]
            kept = min([mask.bit_length() for mask in masks] + ([] if bits is None else [bits]), default=None)
            yield from ((side, kept) for side in (lhs, rhs))
        case Binary(op="%", lhs=lhs, rhs=rhs) if expr.dtype == INT32 and (power := _log2(rhs)) is not None:
            yield lhs, power
        case Binary(op="+" | "-" | "*" | "|" | "^", lhs=lhs, rhs=rhs):
            yield from ((side, bits) for side in (lhs, rhs))
        case Binary(op="<<", lhs=lhs, rhs=rhs):
            yield from ((lhs, bits), (rhs, None))
        case Binary(op=">>" | "//" as op, lhs=lhs, rhs=rhs) if op == ">>" or _log2(rhs) is not None:
            shift = int(static_value(rhs) or INT32.bits) if op == ">>" else _log2(rhs) or 0
            more = None if bits is None else bits + shift
            yield from ((lhs, None if more is None or more > INT32.bits else more), (rhs, None))
        case Unary(op="-", operand=operand):
            yield operand, bits
        case _:
            yield from ((child, None) for child in children(expr))


def _log2(expr: Expr) -> int | None:
    """The binary logarithm of a known power of two; None for other expressions."""
    return log2_of(int(static_value(expr) or 0))


@kept
def _decided(launch: Launch) -> dict[Var, Known]:
    """The variables that more than sizes and indices decide."""
    updates = (stmt.previous for stmt in launch.statements if isinstance(stmt, Atomic))
    found = {var: Known.DATA for var in updates if var is not None}  # each update finds another value
    given, differing = [*_given(launch)], _differing(launch)
    for _ in given:
        before = dict(found)
        for var, value in given:
            known = max(_known(value, found, differing), found.get(var, Known.BY_LAUNCHER))
            if known is not Known.BY_LAUNCHER:
                found[var] = known
        if found == before:
            break
    return found


def _given(launch: Launch) -> Iterator[tuple[Var, Expr]]:
    """Variables, with each number that decides their values."""
    for stmt in (*launch.prelude, *launch.statements):
        match stmt:
            case Let(var=var, value=value) | Assign(var=var, value=value):
                yield var, value
            case Declare(var=var, init=value) if value is not None:
                yield var, value
            case Loop(var=var):
                yield from ((var, value) for value in (stmt.start, stmt.stop, stmt.step))
            case _:
                pass


@kept
def _differing(launch: Launch) -> frozenset[Var]:
    """The names of values that differ between the iterations of a T.Parallel, or between threads."""
    found: set[Var] = set()
    given = [*_given(launch)]
    for _ in given:
        more = {var for var, value in given if var not in found and _differs(value, found)}
        if not more:
            break
        found |= more
    return frozenset(found)


def _known(expr: Expr, decided: dict[Var, Known], differing: Set[Var]) -> Known:
    match expr:
        case Var(role=Role.SCALAR):
            return Known.UNIFORM
        case Var():
            return decided.get(expr, Known.BY_LAUNCHER)
        case Load():
            return Known.DATA if any(_differs(index, differing) for index in expr.indices) else Known.UNIFORM
        case _ if works_among_threads(expr):
            return Known.DATA
        case _:
            return max((_known(part, decided, differing) for part in children(expr)), default=Known.BY_LAUNCHER)


def _differs(value: Expr, differing: Set[Var]) -> bool:
    """Whether a value differs between the iterations of a T.Parallel, or between threads; `differing` names do."""
    variables = variables_in(value)
    by_index = any(var.role in (Role.PARALLEL, Role.THREAD) for var in variables)
    return by_index or is_of_thread(value) or not variables.isdisjoint(differing)
