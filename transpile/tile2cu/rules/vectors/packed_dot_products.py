"""Loops whose body is a packed dot product of four bytes: one instruction, dp4a, computes it."""

from tile2cu.analysis.accesses import read_by_itself, viewed, with_values
from tile2cu.analysis.uses import outside_of
from tile2cu.core.dtype import INT8, DType
from tile2cu.core.expr import Binary, Call, Expr, Load, Var, static_value, uncast, with_its_byte
from tile2cu.core.program import (
    Buffer,
    Let,
    Loop,
    LoopKind,
    Parallel,
    Reduce,
    Reduction,
    Scope,
    Store,
)
from tile2cu.core.schedule import PackedDot
from tile2cu.rules.engine import Context


def dot_of_four(op: Parallel, context: Context) -> PackedDot | None:
    """The packed dot product of a loop whose body is an unrolled loop over the four 2-bit numbers of a byte.

    That is `sum[i, j] += ((packed[i, j] >> 2 * part & 3) - less) * x[4 * j + part]`, with bytes in registers and int8
    in a shared tile of one dimension.
    """
    if len(op.body) != 1 or not isinstance(op.body[0], Loop):
        return None
    loop = op.body[0]
    *lets, store = loop.body
    if loop.kind is not LoopKind.UNROLL or loop.count != 4 or not all(isinstance(let, Let) for let in lets):
        return None
    if not (isinstance(store, Store) and store.op == "+" and store.indices == op.vars):
        return None
    if store.buffer.scope is not Scope.FRAGMENT or store.buffer.dtype.name != "int32":
        return None
    value = with_values(store.value, lets)
    if not (isinstance(value, Binary) and value.op == "*"):  # of loads of the pattern, none of them of the accumulator
        return None
    for weight, other in ((value.lhs, value.rhs), (value.rhs, value.lhs)):
        packed, tile = _quarter(weight, op, loop.var), _quad(uncast(other), op.vars[-1], loop.var, context)
        if packed is not None and tile is not None:
            in_total = only_total_is_read(store.buffer, op, context)
            return PackedDot(sum=store, packed=packed[0], less=packed[1], tile=tile, in_total=in_total)
    return None


def only_total_is_read(sums: Buffer, op: Parallel, context: Context) -> bool:
    """Whether only a sum over the last dimension reads a fragment, so that the order of its elements is irrelevant."""
    if sums.scope is not Scope.FRAGMENT:
        return False
    for stmt in outside_of((op,), context.launch.body):
        if sums not in read_by_itself(stmt):
            continue
        if not (isinstance(stmt, Reduce) and stmt.kind is Reduction.SUM and stmt.src == sums != stmt.dst):
            return False
        if stmt.dim != sums.rank - 1:
            return False
    return not viewed(context.launch, sums)


def _quarter(weight: Expr, op: Parallel, part: Var) -> tuple[Buffer, int] | None:
    """(the bytes, the number that is subtracted) of (packed[i, j] >> 2 * part & 3) - less, in any signed type."""
    while isinstance(weight, Call) and weight.function == "cast" and _is_signed(weight.dtype):
        weight = weight.args[0]
    less: object = 0
    if isinstance(weight, Binary) and weight.op == "-" and _is_signed(weight.dtype):
        less = static_value(weight.rhs)
        weight = with_its_byte(weight.lhs)
    if not isinstance(less, int) or not isinstance(weight, Binary) or weight.op != "&":
        return None
    if static_value(with_its_byte(weight.rhs)) != 3:
        return None
    shift = with_its_byte(weight.lhs)
    if not (isinstance(shift, Binary) and shift.op == ">>") or not 0 <= less < 64:
        return None
    packed, amount = with_its_byte(shift.lhs), with_its_byte(shift.rhs)
    factors = {amount.lhs, amount.rhs} if isinstance(amount, Binary) and amount.op == "*" else set()
    number = next((static_value(each) for each in factors - {part}), None)
    if part not in factors or number != 2 or not isinstance(packed, Load) or packed.indices != op.vars:
        return None
    buffer = packed.buffer
    found = isinstance(buffer, Buffer) and buffer.scope is Scope.FRAGMENT and buffer.dtype.name == "uint8"
    return (buffer, less) if found and isinstance(buffer, Buffer) else None


def _is_signed(dtype: DType) -> bool:
    """Whether an integer type has the values of a byte with a sign."""
    return dtype.has_all_of(INT8)


def _quad(other: Expr, last: Var, part: Var, context: Context) -> Buffer | None:
    """The tile of x[4 * last + part]."""
    if not isinstance(other, Load) or not isinstance(other.buffer, Buffer):
        return None
    tile = other.buffer
    if tile.scope is not Scope.SHARED or tile.rank != 1 or tile.dtype.name != "int8":
        return None
    position = context.bounds.linear(other.indices[0])
    return tile if dict(position.terms) == {last: 4, part: 1} and position.constant == 0 else None
